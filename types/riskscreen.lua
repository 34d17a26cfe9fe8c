---@meta
-- Written by tools/generate.lua, for editors.

---@class riskscreen
---@field loop riskscreen.Loop
local riskscreen = { address = {}, decimal = {}, errors = {}, webhook = {}, sandbox = {} }
riskscreen.store, riskscreen.journal, riskscreen.report, riskscreen.redis, riskscreen.queue = {}, {}, {}, {}, {}
riskscreen.explore = {}

---@alias riskscreen.activity_network "ethereum"|"eth"|"tron"|"btc"|"bsc"

---@alias riskscreen.direction "in"|"out"

---@alias riskscreen.freeze_network "ethereum"|"eth"|"tron"

---@alias riskscreen.granularity "day"|"month"

---@alias riskscreen.network "ethereum"|"eth"|"tron"|"btc"|"bsc"|"polygon"|"arbitrum"|"optimism"|"avalanche"|"base"|"zksync"|"merlin"|"kaia"|"iotex"|"ftm"|"theta"|"etc"|"lumia"|"solana"|"doge"|"ltc"

---@alias riskscreen.risk_level "high"|"generally-high"|"low"|"whitelist"

---@alias riskscreen.risk_source "Provider"|"Community"|"User-Defined"

---@alias riskscreen.risk_type "black-gray-goods"|"online-gambling"|"scam"|"hack"|"launder-money"|"sanction"|"frozen"|"politics"|"drug"|"gun"|"terrorist"|"porn"|"controlled-substance"|"bloodiness"|"religion"|"csam"

---@alias riskscreen.usage_group "endpoint"|"user"|"org"

---@alias riskscreen.Action "allow"|"review"|"block"|"unknown"

---@alias riskscreen.Cost number|{ request?: number, item?: number } of a request, and of each of its items

---@alias riskscreen.ErrorKind |"invalid_argument"|"unsupported"|"network"|"timeout"|"tls"|"unauthorized"|"rate_limited"|"bad_request"|"server"|"http"|"api"|"protocol"|"circuit_open"|"cancelled"|"list"|"storage"

---@alias riskscreen.IdentityOwner riskscreen.State|{ identity?: string }

---@alias riskscreen.LookupName "risk"|"entity"|"freeze_events"|"counterparties"

---@alias riskscreen.OfacHandler fun(state: riskscreen.OfacState, value: any)

---@alias riskscreen.TransactionKind "transaction"|"custom_score"

---@class riskscreen.ClientOptions
---@field base_url? string URL of the service: https, or http to this machine. Required unless `transport` is given.
---@field access_key string|function The access key, of at least 8 bytes, or a function that returns it before every request.
---@field timeout? number Time limit of a whole call.
---@field attempt_timeout? number Time limit of one request of a call; by default that of the call.
---@field connect_timeout? number Time limit of connecting, name lookup and TLS included.
---@field concurrency? integer Maximum at a time. Further requests wait, and the wait counts as their time.
---@field max_response_size? integer Longest answer, after decompression.
---@field headers? table More headers for every request.
---@field user_agent? string The client's name; by default riskscreen and its version.
---@field http_version? "auto"|"1.1"|"2" HTTP version; auto takes 2 where TLS offers it.
---@field compression? boolean Whether compressed answers are accepted.
---@field proxy? string URL of a proxy, with `@` as `%40` in a password; the environment's proxy variables are not read.
---@field ca_file? string PEM file of the trusted authorities.
---@field client_cert? string PEM file of the client's certificate.
---@field client_key? string PEM file of that certificate's key, which needs no pass phrase.
---@field unix_socket? string Unix-domain socket to connect to.
---@field endpoints? table Method and path (and envelope) of operations by name, such as kyt_result = { method = 'GET', path = '/…/{requestId}' }: for operations whose path is not published.
---@field extend? table Values that the service has added to its enumerations, for requests and for decisions of this client.
---@field usage_parameters? table Names on the wire of the usage query's parameters, which the interface does not publish.
---@field transaction_parameters? table Name on the wire of a transaction's `custom_id`, which the interface shows in results alone.
---@field transport? function Sends requests in place of the library's HTTP: transport(request) --> reply | nil, failure. What it raises fails the call.
---@field identity? string Name of the service behind a `transport` of your own. Whatever is kept of its answers is kept under this name.
---@field account? string Name of your account at the service, the same after the key is replaced. Required beside `store` and a queue, and wherever decisions are kept in Redis. Where `headers` choose one of several tenants, each has its own name.
---@field policy? table Policy of `screen`; by default the default policy.
---@field address_check? string|boolean How addresses are checked before anything is sent: `checksum`, `format`, or false for any text. By default `checksum`, and `format` for the calls of `client.kya`.
---@field lists? table Local deny and allow lists, which decide before the service is asked.
---@field clock? function Returns Unix seconds, for dates in answers and the age of lists; by default os.time.
---@field random? function Returns a number from 0 up to 1, for the jitter of waits; by default its own generator.
---@field journal? table The record of the decisions of `screen` and `screen_all`.
---@field runtime? table The runtime of everything that belongs to this client, in place of the program's: now(), sleep(seconds) and tasks with spawn, gather, signal, on_end, hold and release. transport(settings) is optional.
---@field polling? table When the client polls for a transaction's result, if `endpoints.kyt_result` is set: `first`, `growth`, `jitter`, `ceiling`, `deadline`.
---@field final_statuses? table Values of `status` that make a transaction's result final; by default 1003 alone.
---@field pending_statuses? table Values of `status` under which the wait for a result goes on; by default 1000, 1001 and 1002. A result without a status is pending, too. Any other status ends the wait with an error.
---@field immediate_results? boolean Whether the answer to a submission is the result itself. Then `screen` needs no source of later results.
---@field store? table Store that keeps submitted transactions, so that a program that starts again submits none twice.
---@field inbox? table Inbox whose webhooks bring results, made by `table`.
---@field retry? table|boolean When a failed request is sent again; false: never.
---@field rate_limit? table The token bucket at which calls wait for their turn.
---@field breaker? table|boolean When a failing service gets no requests for a while; true: with the defaults. Inside nginx it is on by default.
---@field hedge? table|boolean When a late lookup is sent a second time; true: with the defaults.
---@field shared_dict? string Inside nginx: the `lua_shared_dict` in which all workers have one circuit and one `rate_limit`.
---@field shared_as? string Name of the shared state; clients with the same name share it. By default clients of one service and account do.
---@field on? table Hooks: functions that get a description of what happens to a call.

---@class riskscreen.CallOptions
---@field address_check? string|boolean How addresses are checked before anything is sent: `checksum`, `format`, or false for any text. By default `checksum`, and `format` for the calls of `client.kya`.
---@field extra? table Parameters that the published interface does not list, such as the number of top counterparties.
---@field timeout? number Time limit of this call.
---@field attempt_timeout? number Time limit of one request of this call.
---@field headers? table More headers for this call's requests.
---@field retry? table|boolean This call's settings; the client's hold for the others.
---@field priority? "high"|"normal"|"low" The call's turn under `rate_limit`; by default normal.
---@field traceparent? string The trace of the call in the form of W3C Trace Context, passed on to the service unchanged.

---@class riskscreen.RedisOptions
---@field url? string `redis://[user:password@]host:port/database`, `rediss://` for TLS, or `unix:/path`. With `sentinels` the host is not used. In a password `@` is `%40`.
---@field username? string User of Redis' ACL; by default the one of the URL.
---@field password? string|function The password, or a function that returns it before each connection; by default the one of the URL.
---@field timeout? number Time limit of a command, without connecting.
---@field connect_timeout? number Time limit of connecting to one server.
---@field ca_file? string PEM file of the trusted authorities for `rediss://`.
---@field sentinels? table The Sentinels to ask for the master.
---@field prefix? string Beginning of all keys, which other programs must not use. Keys have it in braces: one hash slot of a Cluster.
---@field max_reply? integer Memory that one reply may take.
---@field pool_size? integer Idle connections of each worker that nginx keeps.
---@field keepalive? number How long nginx keeps an idle connection.

---@class riskscreen.Walk
---@field limit? integer The most items to report.
---@field prefetch? integer Pages that are fetched while the caller works.
---@field max_pages? integer The most pages to read before the walk fails.

---@class riskscreen.nginx.GateOptions
---@field client table A client, or the options of one.
---@field dict? string The lua_shared_dict in which all workers cache decisions.
---@field lru? integer How many addresses each worker caches itself; 0: none.
---@field ttl? table How long a decision is cached, by action.
---@field stale? table How long after that it may be used while the service fails, by action.
---@field account_lists? table Keeps the account's blacklist in the dict and blocks without a lookup. {}: the defaults.
---@field redis? table Shares decisions and purges with the gates of other machines, by Redis.
---@field lists? table Local deny and allow lists, which decide before the service is asked.
---@field webhook? table The inbox that `gate:webhook()` serves, or the options of one.
---@field journal? table Records every decision of the gate in a file: { path = … }.
---@field decisions? table Lets services in other languages ask `gate:decisions()`: { secret = … }.
---@field name? string The gate's name in metrics. Gates that share a dict need different names; they do not share decisions.
---@field version? string Decisions cached under another version are not used.
---@field address_check? string|boolean How addresses are checked: `checksum`, `format`, or false for any text. By default as the client does, or `checksum`.
---@field is_address? function is_address(address, network) → true if it can be one; by default `address_check` decides.
---@field address? string|table|function Where the address is: a text is the address itself; a table with one of `argument`, `header`, `variable`, `path`, `json` and `form` names a place in the request; a function returns it.
---@field network? string|table|function Where the network is, in the same way.
---@field subjects? table Several addresses instead of `address`: { address = …, network = … } each. The worst decision counts.
---@field policy? table Policy of `screen`; by default the default policy.
---@field on_unknown "block"|"review"|"allow" The effective action of an unknown decision; required.
---@field on_invalid? "block"|"review"|"allow" The effective action if the request has no address, or one that can be read in two ways.
---@field on_review? "block"|"review"|"allow" The effective action of review; `allow` leaves it to the application.
---@field monitor? boolean true: decides and logs, and lets every request pass.
---@field exempt? table|function Callers that pass without a lookup: addresses, networks, and functions that return true.
---@field methods? table Methods such as "POST"; a request with another one is invalid, and so is one with a header that overrides it. HEAD counts as GET. By default all methods are accepted.
---@field timeout? number How long a request may wait for its decision.
---@field proxy? table The proxies that ask `gate:answer()` about their requests.
---@field block? table The answer to a blocked request.
---@field review? table The answer to a request for review; by default that of `block`.
---@field unknown? table The answer to an unknown decision; by default by effective action.
---@field invalid? table The answer if there is no address; by default by effective action.
---@field variables? table Variables of nginx to set, for the access log. Each must exist: declare it with `set` or `map`.
---@field log? "debug"|"info"|"notice"|"warn"|"err" The level of the error log's lines about denied requests.

---@class riskscreen.blacklist
local riskscreen_blacklist = {}

---One page of the account's blacklist.
---@param parameters { page?: integer, pageSize?: integer }
---@param options? riskscreen.CallOptions
---@return { network?: riskscreen.network, address: string, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source, chains?: { chain?: string, chainName?: string }[] }[], createdAt?: integer }[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_blacklist:list(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return fun(): { network?: riskscreen.network, address: string, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source, chains?: { chain?: string, chainName?: string }[] }[], createdAt?: integer }[]|nil, riskscreen.Response|nil
function riskscreen_blacklist:pages(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return fun(): { network?: riskscreen.network, address: string, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source, chains?: { chain?: string, chainName?: string }[] }[], createdAt?: integer }|nil
function riskscreen_blacklist:each(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return { network?: riskscreen.network, address: string, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source, chains?: { chain?: string, chainName?: string }[] }[], createdAt?: integer }[]|nil items
---@return riskscreen.Error|nil err
function riskscreen_blacklist:all(parameters, options) end

---Adds addresses to the account's blacklist.
---@param parameters { list: { address: string, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type }[], network?: riskscreen.network }[], network?: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return riskscreen.Additions|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_blacklist:add(parameters, options) end

---@class riskscreen.whitelist
local riskscreen_whitelist = {}

---One page of the account's whitelist.
---@param parameters { page?: integer, pageSize?: integer }
---@param options? riskscreen.CallOptions
---@return { chain?: string, address: string, createdAt?: integer }[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_whitelist:list(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return fun(): { chain?: string, address: string, createdAt?: integer }[]|nil, riskscreen.Response|nil
function riskscreen_whitelist:pages(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return fun(): { chain?: string, address: string, createdAt?: integer }|nil
function riskscreen_whitelist:each(parameters, options) end

---@param parameters? riskscreen.Walk
---@param options? riskscreen.CallOptions of each page's call
---@return { chain?: string, address: string, createdAt?: integer }[]|nil items
---@return riskscreen.Error|nil err
function riskscreen_whitelist:all(parameters, options) end

---@class riskscreen.kya
local riskscreen_kya = {}

---The entity that owns an address.
---@param parameters { address: string, network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return { time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, contract?: boolean, entity?: { entityName?: string, entityCode?: string, entityCategory?: string, entityCategoryCode?: string } }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:entity(parameters, options) end

---The entities that own many addresses.
---@param parameters { addresses: string[], network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return ({ time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, contract?: boolean, entity?: { entityName?: string, entityCode?: string, entityCategory?: string, entityCategoryCode?: string } }|false)[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:entities(parameters, options) end

---The risks of an address.
---@param parameters { address: string, network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return { time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source }[] }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:risk(parameters, options) end

---The top counterparties of an address.
---@param parameters { address: string, network: riskscreen.activity_network }
---@param options? riskscreen.CallOptions
---@return { opponents: { entities?: { entityName?: string, entityCode?: string, entityCategory?: string, entityCategoryCode?: string }[], risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type }[], dir?: riskscreen.direction, chain?: string, address?: string, amount?: number, symbol?: string, transactionNumbers?: integer }[] }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:counterparties(parameters, options) end

---Balance and activity of an address.
---@param parameters { address: string, network: riskscreen.activity_network }
---@param options? riskscreen.CallOptions
---@return { activeType?: integer, balance?: table<string, any>, firstInTx?: { time?: integer, hash?: string, symbol?: string }, firstOutTx?: { time?: integer, hash?: string, symbol?: string }, mainInStatistic?: { symbol?: string, contractAddr?: string, txCount?: integer, txValue?: number }, mainOutStatistic?: { symbol?: string, contractAddr?: string, txCount?: integer, txValue?: number }, stableInStatistic?: { symbol?: string, contractAddr?: string, txCount?: integer, txValue?: number }, stableOutStatistic?: { symbol?: string, contractAddr?: string, txCount?: integer, txValue?: number } }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:basic(parameters, options) end

---The freeze events of an address.
---@param parameters { address: string, network: riskscreen.freeze_network }
---@param options? riskscreen.CallOptions
---@return { hash?: string, chain?: string, txTime?: integer, contractAddress?: string, token?: string, type?: string, event?: string, frozenBalance?: string, destroyedBalance?: string }[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:freeze_events(parameters, options) end

---@class riskscreen.account
local riskscreen_account = {}

---Calls and credits used.
---@param parameters { granularity?: riskscreen.granularity, start_date?: string, end_date?: string, group_by?: riskscreen.usage_group[] }
---@param options? riskscreen.CallOptions
---@return { time?: string, methodName?: string, methodUrl?: string, totalCalls?: integer, useCredits?: integer }[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_account:usage(parameters, options) end

---@class riskscreen.kyt
local riskscreen_kyt = {}

---Submits a transaction for screening; the result comes at once, or later by its requestId.
---@param parameters { network: riskscreen.network, hash: string, tokenContractAddress?: string, outputAddress?: string, direction?: string, customId?: string }
---@param options? riskscreen.CallOptions
---@return riskscreen.Transaction|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:submit(parameters, options) end

---Removes addresses from the blacklist.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_blacklist:remove(parameters, options) end

---Adds addresses to the whitelist.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_whitelist:add(parameters, options) end

---Removes addresses from the whitelist.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_whitelist:remove(parameters, options) end

---The risks of a transaction.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:risks(parameters, options) end

---Requests a transaction's custom risk score.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:custom_score(parameters, options) end

---The result of a custom score.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:custom_score_result(parameters, options) end

---The risk score of an address.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:score(parameters, options) end

---The result of an asynchronous request.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:result(parameters, options) end

---@class riskscreen.Client
---@field account riskscreen.account
---@field blacklist riskscreen.blacklist
---@field kya riskscreen.kya
---@field kyt riskscreen.kyt
---@field whitelist riskscreen.whitelist
local riskscreen_Client = {}

---@type string the version of the library
riskscreen._VERSION = nil

---@type table[] the kinds of errors: `kind`, `retryable`, `doc`
riskscreen.errors.kinds = nil

---A new client.
---@param given riskscreen.ClientOptions
---@return riskscreen.Client
function riskscreen.new(given) end

---Makes a policy. The default one blocks high risks and any sanction, terrorist or csam risk. It reviews generally-high risks and allows low and whitelist risks and an address without risks. Everything else is unknown.
---@param options? riskscreen.PolicyOptions
---@return riskscreen.Policy
function riskscreen.policy(options) end

---Makes a policy for transactions. A result that is malformed, not final or in contradiction with itself is unknown.
---@param given table
---@return riskscreen.ScorePolicy
function riskscreen.score_policy(given) end

---Applies a function to every item, `concurrency` at a time: `for index, value, err, item in riskscreen.map(source, fn, { concurrency = 8 }) do … end`. The loop raises an error of the function. At most 8 × concurrency items are taken and not yet reported.
---@param source any[]|(fun(): any)|file* of a file the lines, without those that are blank
---@param body fun(item: any, index: integer): any, any both results are reported; nil as the first one is a failure
---@param given? { concurrency?: integer, ordered?: boolean, on_progress?: function, total?: integer, stop_after_failures?: integer }
---@return riskscreen.Run
function riskscreen.map(source, body, given) end

---Screens the same addresses again and again, and reports what has changed.
---@param client riskscreen.Client
---@param request riskscreen.WatchRequest
---@return riskscreen.Watch
function riskscreen.watch(client, request) end

---The canonical spelling of a text that is an address of a network.
---@param address any
---@param network any
---@param level? "checksum"|"format"|false by default "checksum"; false accepts any text
---@param added? table<string, string|true> networks that the operator has added, perhaps with one of the same form
---@return string|nil canonical
---@return string|nil message
---@return "address"|"network"|nil field
function riskscreen.address.validate(address, network, level, added) end

---The canonical spelling of an address: the same for every spelling of one address. A text that is no address stays as it is, except that 0x texts get lower case.
---@param address string
---@param network? string
---@return string canonical
---@return boolean is_hexadecimal
function riskscreen.address.normalize(address, network) end

---The networks on which a text is an address, in alphabetical order.
---@param address any
---@param level? "checksum"|"format" by default "checksum"
---@return string[]
function riskscreen.address.networks_of(address, level) end

---A sentence for a person: why a text is no address of a network. Nil for an address.
---@param address any
---@param network string
---@return string|nil
function riskscreen.address.explain(address, network) end

---Compares two decimal texts by their exact value.
---@param a string
---@param b string
---@return -1|0|1|nil order -1 when a is less than b, 0 when they are equal, 1 when a is greater
---@return string|nil message names the text that is no decimal
function riskscreen.decimal.compare(a, b) end

---Whether a value is one of the library's errors.
---@param value any
---@return boolean
function riskscreen.errors.is(value) end

---@class riskscreen.Response the second result of a call, beside its value
---@field status integer
---@field headers table<string, string>
---@field elapsed number seconds
---@field attempts integer
---@field pagination? table
---@field cached boolean
---@field times? table<string, number>
---@field is_sandbox? boolean the sandbox in this process answered, and no service
local riskscreen_Response = {}

---@class riskscreen.ScreenRequest
---@field address any an address; anything else makes the decision unknown
---@field network any the chain's short name
---@field policy? riskscreen.Policy the client's, or the default policy
---@field include? riskscreen.LookupName[] lookups to make besides those that the policy needs
---@field timeout? number seconds for all lookups together
---@field retry? table|boolean as for a call
---@field priority? "high"|"normal"|"low" as for a call
---@field traceparent? string as for a call
---@field address_check? "checksum"|"format"|false as for a client
---@field id? string|number your identifier of the request, for the decision and the journal
---@field meta? table<string, string> facts for the journal, such as the case and the analyst
local riskscreen_ScreenRequest = {}

---@class riskscreen.ScreenAllRequest
---@field source any[]|(fun(): any)|file* addresses, or tables of `address`, `network` and `id`; a file has rows, as table reads them
---@field network? any the network of items that name none
---@field policy? riskscreen.Policy
---@field include? riskscreen.LookupName[]
---@field timeout? number seconds for each decision
---@field concurrency? integer decisions at a time, 32 by default
---@field ordered? boolean in the source's order (the default), or as they finish
---@field on_progress? fun(done: integer, failed: integer, rate: number, eta: number|nil)
---@field total? integer number of items, for the eta; the length of a list is known
---@field stop_after_failures? integer failures in a row after which the run raises an error object
---@field remember? integer different addresses and networks, at least, that are not asked for again, 4096 by default
---@field address_check? "checksum"|"format"|false as for a client
---@field meta? table<string, string> facts for the journal, such as the case and the analyst
local riskscreen_ScreenAllRequest = {}

---@class riskscreen.Error
---@field kind riskscreen.ErrorKind
---@field message string
---@field operation? string the interface's name of the operation
---@field asked? string what a screening asked for: the name of a lookup, or of a kind of transaction
---@field status? integer the HTTP status, only if there was one
---@field code? integer|string the service's own code; of Redis the first word of its error
---@field msg? string the service's own message
---@field envelope_status? string the `status` in the service's envelope, such as FAIL
---@field timestamp? integer of a validation failure, as the service gave it
---@field retryable boolean the same call may succeed later
---@field retry_after? number seconds that the service asked to wait
---@field attempts? integer requests sent
---@field elapsed? number seconds
---@field sent? boolean the request may have reached the service
---@field phase? "queue"|"name_lookup"|"connect"|"tls"|"first_byte"|"body" the phase in which a request failed
---@field field? string the parameter or option at fault
---@field allowed? any[] its valid values
---@field failed? integer[] of a bulk call: the positions that failed
---@field partial? table<integer, any> of a bulk lookup: the records found, by position
---@field report? riskscreen.Additions of a bulk addition
---@field retry? fun(): any, any of a bulk call: repeats the failed part, with the results of the call
---@field uncertain? boolean a request that may have taken effect is not sent again
---@field ticket? string of a transaction that may come later, for `client.kyt:resume`
---@field submission? { kind: riskscreen.TransactionKind, customId?: string, hash?: string, network?: string } of a transaction that the store keeps, and that cannot be awaited
---@field request_id? string of a result that did not come
---@field last? table the last answer about a result that did not come in time
---@field cause? any the failure behind this one
---@field failures? integer of a run that stopped: its failures in a row
---@field decision? riskscreen.Decision of a local list that forbids the request
---@field absent? boolean of a successful answer that leaves out the list it is about
---@field reason? string of a store, a journal or Redis: why it failed, such as "full" or "locked"
---@field is_sandbox? boolean the sandbox in this process failed, and no service
---@field page? integer of a list: the page at which the walk stopped
local riskscreen_Error = {}

---Screens one address.
---@param request riskscreen.ScreenRequest
---@return riskscreen.Decision
function riskscreen_Client:screen(request) end

---Screens every item of a source: an iterator of one decision for each item. A decision also has `index`, the item's position, `input`, the item, and its `id`. If an earlier item had the same address and network, `repeats` is its position. An item with an unknown field raises an error object.
---@param request riskscreen.ScreenAllRequest
---@return riskscreen.Run
function riskscreen_Client:screen_all(request) end

---Decides as `screen` does, from results that were looked up before: a risk assessment, or the kept answer of a journal. It calls nothing and records nothing. With local lists the risk assessment must name its address.
---@param results riskscreen.LookupResults|table
---@return riskscreen.Decision
function riskscreen_Client:decide(results) end

---Calls an operation by the interface's own name.
---@param name string
---@param parameters? table
---@param call_options? table the call's options
---@return any value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_Client:call(name, parameters, call_options) end

---Sends a request that no operation describes; the value is the decoded body.
---@param method "GET"|"POST"|"PUT"|"PATCH"|"DELETE"
---@param path string beginning with "/", percent-encoded, without a query
---@param call_options? { query?: table, body?: any, headers?: table, timeout?: number }
---@return any value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_Client:request(method, path, call_options) end

---The client's counters and latency histograms, and the status of its rate limit and circuit breaker.
---@return table
function riskscreen_Client:stats() end

---Closes the client. Its connections are closed when they are collected, and further calls raise.
function riskscreen_Client:close() end

---@class riskscreen.Transaction a submitted transaction
---@field requestId? string absent when the outcome of the submission is uncertain
---@field customId? string
local riskscreen_Transaction = {}

---Submits a transaction and awaits its result. Like every call it ends within `timeout`: the call's own, or else the client's. The other call options apply to the submission and to every poll. Nothing is submitted where no result could come. After a timeout `client.kyt:await(err.request_id)` goes on waiting.
---@param parameters { network: riskscreen.network, hash: string, tokenContractAddress?: string, outputAddress?: string, direction?: string, customId?: string }
---@param options? riskscreen.CallOptions
---@return table|nil result
---@return table|riskscreen.Error
function riskscreen_kyt:screen(parameters, options) end

---Submits a transaction for a custom risk score, like `submit`, with the parameters that the service names for it.
---@param parameters table
---@param call_options? table
---@return riskscreen.Transaction|nil
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:submit_custom_score(parameters, call_options) end

---Submits a transaction for a custom risk score and awaits the result, like `screen`.
---@param parameters table
---@param call_options? table
---@return table|nil result
---@return table|riskscreen.Error
function riskscreen_kyt:screen_custom_score(parameters, call_options) end

---Awaits the result of a request that any process has submitted.
---@param request_id string
---@param await_options_given? { timeout?: number, kind?: riskscreen.TransactionKind } by default `polling.deadline`
---@return table|nil result
---@return table|riskscreen.Error
function riskscreen_kyt:await(request_id, await_options_given) end

---Resumes a transaction that any process has submitted.
---@param ticket string
---@return riskscreen.Transaction|nil
---@return riskscreen.Error|nil
function riskscreen_kyt:resume(ticket) end

---Waits for the result. Every wait returns the same result.
---@param given? { timeout?: number } by default `polling.deadline`
---@return table|nil result as the interface spells it
---@return table|riskscreen.Error other on success `source` ("submission", "poll" or "webhook"), `event`, `elapsed`, `attempts`
function riskscreen_Transaction:await(given) end

---Iterates over the transactions that the client's store keeps: submitted by any program, and not forgotten yet. Where it is not known whether one was submitted, the transaction is nil; the error has `uncertain` and perhaps a `ticket`. For an entry that is damaged the error has the kind `storage`, and the loop goes on.
---@return fun(): boolean|nil, riskscreen.Transaction|nil, riskscreen.Error|nil the first value is true for each
function riskscreen_kyt:kept() end

---Removes a submission with these parameters from the client's store, so that it may be submitted again. Use it if the outcome of a submission was not known, and it did not reach the service.
---@param parameters table
---@param given? { kind?: riskscreen.TransactionKind }
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_kyt:forget(parameters, given) end

---A text with which any process can resume the transaction: `client.kyt:resume(ticket)`. A transaction that finished at once may have no requestId, and then nothing can be resumed.
---@return string|nil
---@return riskscreen.Error|nil
function riskscreen_Transaction:ticket() end

---Removes the transaction from the client's store: its result is handled. Until then it is not submitted again. Without a store it does nothing.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_Transaction:forget() end

---@class riskscreen.RunStatus the progress of a run
---@field taken integer items taken from the source
---@field reported integer items whose result was reported
---@field failed integer reported items without a value
---@field position integer every item up to this one has been reported
---@field pending { index: integer, item: any }[] items taken and not reported, in the source's order
local riskscreen_RunStatus = {}

---@class riskscreen.Run one pass over a source: an iterator that can be stopped
local riskscreen_Run = {}

---@return riskscreen.RunStatus
function riskscreen_Run:where() end

---Stops the run: no further item is taken, the items under way are cancelled, and the loop over the run ends.
---@return riskscreen.RunStatus
function riskscreen_Run:stop() end

---@class riskscreen.Decision
---@field action riskscreen.Action
---@field reasons riskscreen.Reason[] the worst first
---@field address? any as the caller gave it
---@field network? any as the caller gave it
---@field id? string|number the caller's own, of this request or item alone
---@field record? table the risk assessment, or the transaction's result
---@field entity? table the entity record, where it was looked up; likewise the next two
---@field freeze_events? table[]
---@field counterparties? table
---@field error? riskscreen.Error the failure that decided, or that left the decision undetermined
---@field errors? table<riskscreen.LookupName, riskscreen.Error> every lookup that failed
---@field not_offered? riskscreen.LookupName[] lookups that the service does not offer for the network
---@field source? "list"|"sandbox" a local list has decided, without a call; or a policy about what the sandbox answered
---@field degraded boolean a rule turned a failure or an unrecognised value into the action, or an allow list decided
---@field cached boolean
---@field stale boolean
---@field elapsed number seconds
local riskscreen_Decision = {}

---@class riskscreen.Reason
---@field action riskscreen.Action
---@field message string for a person
---@field rule? riskscreen.Rule the operator's rule that decided
---@field risk? table riskLevel, riskType and riskSource of the risk that was decided, which the decisions of a client share; in a decision of a policy alone the risk as it was given
---@field error? riskscreen.Error the failure that was decided
---@field list? string the file of the local list that has the address
---@field entry? { address: string, network?: string, expires?: number } its entry there; Unix seconds
---@field note? string of that entry
local riskscreen_Reason = {}

---@class riskscreen.LookupResults the records by the lookup's name; a lookup that failed is in `errors`
---@field risk? table
---@field entity? table
---@field freeze_events? table[]
---@field counterparties? table
---@field errors? table<riskscreen.LookupName, riskscreen.Error>
---@field not_offered? table<riskscreen.LookupName, boolean> the service does not offer it for the network
local riskscreen_LookupResults = {}

---@class riskscreen.Proof
---@field holds? boolean nil: not decided
---@field cases number raw combinations
---@field evidence? riskscreen.LookupResults the plainest that breaks the claim
---@field decision? riskscreen.Decision about it
---@field steps integer
local riskscreen_Proof = {}

---@class riskscreen.PolicyDiff
---@field differs? boolean nil: not decided
---@field complete boolean there are no changes besides these
---@field changes riskscreen.PolicyChange[] the worst first: from block to allow
---@field cases number raw combinations
local riskscreen_PolicyDiff = {}

---@class riskscreen.PolicyFinding
---@field about string a rule, or an unknown value
---@field message string
---@field is_fault boolean the policy does not do what it says
local riskscreen_PolicyFinding = {}

---@class riskscreen.PolicyChange
---@field before riskscreen.Action
---@field after riskscreen.Action
---@field reasons string[] of the two policies about the example
---@field cases number raw combinations
---@field evidence? riskscreen.LookupResults the plainest example; nil: whether there is one is not decided
local riskscreen_PolicyChange = {}

---@class riskscreen.PolicyOptions
---@field rules? riskscreen.Rule[] the default rules
---@field extend? { level?: string[], type?: string[], source?: string[], category?: string[] } values the service has added, and categories that no rule names
---@field provider? string the service's own name, as riskSource has it
---@field absent_entity? "unknown"|"none" the meaning of an entity record without an entity
---@field absent_risks? "unknown"|"none" the meaning of a risk assessment or a counterparty without `risks`
---@field absent_opponents? "unknown"|"none" the meaning of an answer about counterparties without `opponents`
---@field absent_freeze_events? "unknown"|"none" the meaning of an answer about freeze events without `data`
---@field not_offered? "unknown"|"skip" the meaning of a rule where the service has no such lookup for the network
---@field lifting? string|string[] values of a freeze event's `type` or `event` that lift earlier freezes
local riskscreen_PolicyOptions = {}

---@class riskscreen.PolicyClaim
---@field never? riskscreen.Action|riskscreen.Action[]
---@field at_least? riskscreen.Action in the order allow, review, unknown, block
---@field at_most? riskscreen.Action
---@field always? riskscreen.Action
---@field where? table the conditions of a rule; and `error`: a lookup failed with such a kind, `failed`: one of these lookups failed, `is`: by the field "absent", "null", "unseen", "wrong", "missing" (absent or null) or "unknown"
local riskscreen_PolicyClaim = {}

---@class riskscreen.Rule
---@field action "allow"|"review"|"block"
---@field name? string for people: the reasons repeat it
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field source? string|string[] riskSource
---@field no_risk? boolean true: only an address without any risk
---@field unrecognised? boolean true: only a risk whose level or type is absent or not known to the library
---@field whitelist? boolean the record's flag
---@field contract? boolean the entity record's flag
---@field category? string|string[] the entity's category or its code; case, spaces, hyphens and underscores are ignored
---@field frozen? boolean whether a freeze is in force
---@field counterparty? riskscreen.CounterpartyRule a risky counterparty
---@field error? boolean|string|string[] true or error kinds: only a lookup that failed
---@field any? boolean true: every case; it stands alone, and replaces the conditions
---@field not_offered? "unknown"|"skip" the meaning where the service does not offer a lookup that the rule needs; the policy's, if absent
local riskscreen_Rule = {}

---@class riskscreen.CounterpartyRule matches counterparties by the `level`, the `type` or both of one of their risks
---@field direction? "in"|"out" absent: both
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field share? number of the amounts in the direction, in any one token, at least; absent: any amount
local riskscreen_CounterpartyRule = {}

---@class riskscreen.ScoreRule
---@field action "allow"|"review"|"block"
---@field name? string for people: the reasons repeat it
---@field score_at_least? string a decimal text
---@field score_below? string a decimal text
---@field direction? "in"|"out" a strategy's direction
---@field strategy? string|string[] a strategy's number
---@field strategy_name? string|string[] case, spaces, hyphens and underscores are ignored, as in the next two
---@field detail? string|string[] a detail's code
---@field detail_name? string|string[]
---@field error? boolean|string|string[] true or error kinds: only a result that failed
local riskscreen_ScoreRule = {}

---@class riskscreen.Policy
local riskscreen_Policy = {}

---@class riskscreen.ScorePolicy
local riskscreen_ScorePolicy = {}

---Decides from the results of the lookups, or from a transaction's result that has risks.
---@param results riskscreen.LookupResults|table|nil
---@param other? riskscreen.Error|riskscreen.Response
---@return riskscreen.Decision
function riskscreen_Policy:decide(results, other) end

---Whether a claim holds for all evidence, such as "never allow where type = sanction". See docs/policy-proofs.md.
---@param claim string|riskscreen.PolicyClaim
---@return riskscreen.Proof
function riskscreen_Policy:prove(claim) end

---The kinds of evidence whose action another policy changes, the worst change first. See docs/policy-proofs.md.
---@param other riskscreen.Policy
---@return riskscreen.PolicyDiff
function riskscreen_Policy:diff(other) end

---Finds rules that never decide, and says what the policy does where a lookup is not offered or a value is not known.
---@return riskscreen.PolicyFinding[]
function riskscreen_Policy:check() end

---Decides from the result of a transaction: `policy:decide(client.kyt:screen { … })`.
---@param result table|nil
---@param other? riskscreen.Response|riskscreen.Error
---@return riskscreen.Decision
function riskscreen_ScorePolicy:decide(result, other) end

---@class riskscreen.Additions every item of the list is in exactly one of these
---@field added integer[] positions of the items that the service has taken
---@field refused riskscreen.Fate[] the service has refused them
---@field uncertain riskscreen.Fate[] sent, and no answer tells whether it was taken: it is not sent again
---@field unsent riskscreen.Fate[] never sent
local riskscreen_Additions = {}

---@class riskscreen.Fate of one item that was not added
---@field index integer its position in the list
---@field item table as it was given
---@field error riskscreen.Error the reason
local riskscreen_Fate = {}

---@class riskscreen.Task of this runtime: a program may have several
local riskscreen_Task = {}

---Runs a function as a task until the task and all its children have ended. Returns the function's results, or raises its failure.
---@param body fun(...): any
---@return any ...
function riskscreen.run(body, ...) end

---Starts a task. Inside a task the new task is a child. The parent does not end before its children, and cancels them when it is cancelled. It fails when a child fails and nobody awaits the child.
---@param body fun(...): any
---@return riskscreen.Task
function riskscreen.spawn(body, ...) end

---Runs functions side by side and waits for all of them. When one raises, the others are cancelled, and its failure is raised.
---@param bodies (fun(): any)[]
---@return any[] values the first result of each, at its place
---@return any[] errs the second result of each, at its place
function riskscreen.gather(bodies) end

---Waits.
---@param seconds number
function riskscreen.sleep(seconds) end

---Calls a function soon, in a task without a parent. Its failure is reported on stderr.
---@param fn fun(...): any
---@return boolean deferred
function riskscreen.defer(fn, ...) end

---Waits for a task and returns the results of its function. A failure is raised, with its traceback.
---@param timeout? number seconds
---@return any ... or nil and an error of kind timeout (the task goes on) or cancelled
function riskscreen_Task:await(timeout) end

---Stops the task and the tasks that it spawned. Their waits are aborted at once. `await` of a cancelled task returns nil and an error of kind cancelled. A task that has ended stays as it is.
function riskscreen_Task:cancel() end

---@class riskscreen.Loop
local riskscreen_Loop = {}

---The descriptor that is readable when `step` has work.
---@return integer
function riskscreen_Loop:pollfd() end

---The events to poll for on the descriptor.
---@return "r"
function riskscreen_Loop:events() end

---Seconds after which `step` has work even if the descriptor is not readable; nil for never.
---@return number|nil
function riskscreen_Loop:timeout() end

---Lets requests progress and resumes tasks. It waits at most so many seconds; without a number, until something happens. With a budget it does not wait, and leaves further work to the next step.
---@param wait? number|{ budget: number } seconds
function riskscreen_Loop:step(wait) end

---@class riskscreen.WebhookEvent
---@field webhookId string
---@field eventType string the interface shows getTxHashCustomRiskScore; the data of others may be anything but null
---@field timestamp string YYYY-MM-DD HH:mm:ss; its zone is not published
---@field data table
local riskscreen_WebhookEvent = {}

---@class riskscreen.Delivery a request to an inbox
---@field method string
---@field headers table<string, string> names in lower case
---@field body string
---@field path string
---@field query string
---@field remote? string the sender's IP address
local riskscreen_Delivery = {}

---@class riskscreen.WebhookStore
---@field claim fun(self, id: string): "new"|"busy"|"done"|nil, any claims the event; or nil and the reason
---@field complete fun(self, id: string) marks the event as handled
---@field release fun(self, id: string) gives up the claim: the event may come again
local riskscreen_WebhookStore = {}

---@class riskscreen.InboxOptions
---@field handlers? table<string, fun(event: riskscreen.WebhookEvent): any> by type of event; "*" for all others
---@field secret? { value: string|string[], header?: string, query?: string, path?: boolean }
---@field allow? string[] addresses and networks that may deliver
---@field verify? fun(body: string, headers: table<string, string>, delivery: riskscreen.Delivery): boolean|nil, string?
---@field accept_unauthenticated? boolean
---@field fetch? fun(request_id: string): table|nil, any gives the result that is used in place of the event's data
---@field store? riskscreen.Store|riskscreen.WebhookStore
---@field account? string required with a store of table
---@field remember? { limit?: integer, ttl?: number } of handled events
---@field early? { limit?: integer, ttl?: number } of events whose transaction is not awaited yet
---@field on_failure? fun(failure: any, event: riskscreen.WebhookEvent)
---@field clock? fun(): number
local riskscreen_InboxOptions = {}

---@class riskscreen.Inbox
local riskscreen_Inbox = {}

---@class riskscreen.InboxListener
---@field url string where deliveries go
---@field port integer
local riskscreen_InboxListener = {}

---A new inbox.
---@param given riskscreen.InboxOptions
---@return riskscreen.Inbox
function riskscreen.webhook.inbox(given) end

---Decodes and checks the body of a delivery. Unknown fields and unknown types of events are kept, and null members of objects are dropped.
---@param body string
---@param headers? table<string, string> of the request
---@return riskscreen.WebhookEvent|nil event
---@return riskscreen.Error|nil err of kind protocol; `field` is the field at fault
function riskscreen.webhook.parse(body, headers) end

---Takes one delivery that any HTTP server has received.
---@param method string
---@param headers table<string, string>
---@param body string
---@param where? { target?: string, remote?: string } the request's path and query, and the sender's IP address
---@return integer status
---@return table<string, string> headers
---@return string body
function riskscreen_Inbox:deliver(method, headers, body, where) end

---Sets the handler of a type of event, or of all others: "*".
---@param event_type string
---@param handler fun(event: riskscreen.WebhookEvent): any
function riskscreen_Inbox:on(event_type, handler) end

---Serves the inbox over HTTP with the library's own server, driven by its own loop.
---@param options? { host?: string, port?: integer, path?: string, on_refused?: function }
---@return riskscreen.InboxListener|nil listener `url`, `close()`
---@return riskscreen.Error|nil err
function riskscreen_Inbox:listen(options) end

---Answers the request that nginx is serving. Call it in content_by_lua.
---@return integer status
function riskscreen_Inbox:serve() end

---Stops serving. Idempotent.
function riskscreen_InboxListener:close() end

---@class riskscreen.StoreChange one change of a batch
---@field kind "put"|"add"|"replace"|"delete"
---@field space string
---@field key string
---@field value? string of put, add and replace
---@field expected? string of replace and delete: the value that the entry must have
---@field ttl? number seconds until the entry expires; without it the entry stays
local riskscreen_StoreChange = {}

---@class riskscreen.SqliteOptions
---@field path string
---@field synchronous? "full"|"normal"
---@field busy_timeout? number seconds
---@field clock? fun(): number
local riskscreen_SqliteOptions = {}

---@class riskscreen.RedisStoreOptions
---@field redis riskscreen.Redis|string a client, or a URL
---@field name? string
---@field lock_ttl? number seconds
---@field clock? fun(): number
local riskscreen_RedisStoreOptions = {}

---@class riskscreen.Store
local riskscreen_Store = {}

---@class riskscreen.StoreSpace
---@field name string
local riskscreen_StoreSpace = {}

---A store in a file of SQLite, which lasts. Several programs of one machine may use the file at the same time. A call blocks the program for the time of a write, so do not use it in a worker of nginx.
---@param given riskscreen.SqliteOptions|string the options or the path
---@return riskscreen.Store|nil
---@return riskscreen.Error|nil err its `reason` is such as "foreign", "newer" or "damaged"
function riskscreen.store.sqlite(given) end

---A store in Redis, which programs on any machine share. It works in tasks and in nginx, too.
---@param given riskscreen.RedisStoreOptions|string the options or a URL
---@return riskscreen.Store|nil
---@return riskscreen.Error|nil err its `reason` is such as "unreachable", "evicting", "newer" or "wrong_type"
function riskscreen.store.redis(given) end

---A store in memory, which ends with the program.
---@param given? { clock?: fun(): number }
---@return riskscreen.Store
function riskscreen.store.memory(given) end

---A space: the entries of one use of the store, apart from those of others.
---@param name string
---@return riskscreen.StoreSpace
function riskscreen_Store:space(name) end

---Makes several changes at once: all of them, or none where the condition of one does not hold.
---@param changes riskscreen.StoreChange[]
---@return boolean|nil made false: a condition does not hold; nil: the store failed
---@return riskscreen.Error|nil err
function riskscreen_Store:batch(changes) end

---Takes a lock, which one program holds until it releases it, closes the store or ends, however it ends.
---@param name string of letters, digits, "_" and "-"
---@return fun()|nil release
---@return riskscreen.Error|nil err its reason is "locked" where another holder has the lock
function riskscreen_Store:lock(name) end

---Closes the store and releases its locks. Idempotent; later calls raise.
function riskscreen_Store:close() end

---The value of a key; nil without an error where there is none.
---@param key string
---@return string|nil value
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:get(key) end

---Sets the value of a key.
---@param key string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:put(key, value, ttl) end

---Sets the value of a key that has none.
---@param key string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made false: the key has a value
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:add(key, value, ttl) end

---Sets the value of a key whose value is `expected`.
---@param key string
---@param expected string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made false: the key has another value, or none
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:replace(key, expected, value, ttl) end

---Removes a key.
---@param key string
---@param expected? string the value that it must have
---@return boolean|nil made false: the key has no value, or not the expected one
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:delete(key, expected) end

---Iterates over the entries in the order of their keys' bytes. It reads them in pages, so that the program may change the space meanwhile. A change behind the current key is not seen. Raises the error where the store fails.
---@param range? { prefix?: string, after?: string } keys that begin with `prefix` and come after `after`
---@return fun(): string|nil, string|nil
function riskscreen_StoreSpace:each(range) end

---How many keys there are.
---@param prefix? string of the keys
---@return integer|nil
---@return riskscreen.Error|nil err
function riskscreen_StoreSpace:count(prefix) end

---@class riskscreen.Redis
local riskscreen_Redis = {}

---@class riskscreen.RedisScript
---@field name string
---@field text string
---@field sha? string known after the first load
local riskscreen_RedisScript = {}

---A client of Redis. It connects at the first command.
---@param given? riskscreen.RedisOptions|string the options or the URL
---@return riskscreen.Redis
function riskscreen.redis.new(given) end

---A script for `redis:script`.
---@param name string
---@param source string Redis' Lua
---@return riskscreen.RedisScript
function riskscreen.redis.script(name, source) end

---Sends a command and waits for its reply. An integer comes as a number, a text as a string, nothing as false, a list as a table.
---@param ... string|number
---@return any reply nil after a failure
---@return riskscreen.Error|nil err
function riskscreen_Redis:call(...) end

---Sends several commands at once. Each reply is as that of `call`, or an error object.
---@param commands (string|number)[][]
---@return any[]|nil replies
---@return riskscreen.Error|nil err
function riskscreen_Redis:pipeline(commands) end

---Runs a script in Redis: all its changes or none, and no other command meanwhile.
---@param script riskscreen.RedisScript
---@param keys string[]
---@param arguments? (string|number)[]
---@return any reply
---@return riskscreen.Error|nil err
function riskscreen_Redis:script(script, keys, arguments) end

---Sends a command that may wait in Redis, such as `XREAD BLOCK`, over a connection of its own. When the task is cancelled, the connection is closed.
---@param seconds number how long the command may wait; `timeout` is added
---@param ... string|number
---@return any reply
---@return riskscreen.Error|nil err
function riskscreen_Redis:wait(seconds, ...) end

---The key of a name: all keys of a client are in one slot of a Cluster.
---@param name string
---@return string
function riskscreen_Redis:key(name) end

---Closes the connections. Idempotent; later calls return an error.
function riskscreen_Redis:close() end

---@class riskscreen.QueueInput an address, or a transaction
---@field address? string
---@field network? string
---@field transaction? table the parameters of `client.kyt:screen`
---@field fields? table<string, any> is kept and comes back with the result
local riskscreen_QueueInput = {}

---@class riskscreen.QueueResult
---@field position string in the order of the results, for `forget` and `results`
---@field id string run and row of the input, such as "march/17": the same whenever it is read
---@field source string the run
---@field row integer
---@field input riskscreen.QueueInput
---@field action riskscreen.Action
---@field reasons string[]
---@field risks string[] such as "high / hack"
---@field error? riskscreen.ErrorKind of an input that is invalid
---@field identity? string the identity of the decision about an address: service, account, policy and options
---@field time integer Unix seconds
local riskscreen_QueueResult = {}

---@class riskscreen.QueueStatus
---@field waiting integer inputs that no worker has yet
---@field working integer inputs that workers have
---@field following integer inputs that wait for the result of the same address
---@field results integer results that nobody has read
---@field dead integer
---@field added integer all inputs so far
---@field done integer all results so far
---@field shared integer results that needed no call of their own
---@field requeued integer
---@field foreign integer entries of other programs in the queue's streams, which were removed
---@field per_second number results of the last whole minute
---@field left? number seconds until all is done at that rate
---@field oldest? number seconds that the oldest job has waited
---@field workers { name: string, working: integer, idle: number }[] idle: seconds since it asked for work
local riskscreen_QueueStatus = {}

---@class riskscreen.QueueWorkerOptions
---@field client riskscreen.Client
---@field concurrency? integer
---@field policy? riskscreen.Policy|riskscreen.ScorePolicy
---@field request? table
---@field name? string
---@field on_result? fun(result: table)
---@field on_problem? fun(err: riskscreen.Error)
local riskscreen_QueueWorkerOptions = {}

---@class riskscreen.Queue
local riskscreen_Queue = {}

---@class riskscreen.QueueWorker
---@field name string
---@field finished integer results that it has made
local riskscreen_QueueWorker = {}

---A queue. Nothing is sent to Redis yet.
---@param given { redis: riskscreen.Redis, name?: string, capacity?: integer, results?: integer, remember?: number, claim_after?: number, deliveries?: integer, replicas?: integer }
---@return riskscreen.Queue
function riskscreen.queue.new(given) end

---Adds the inputs of a run, and waits while the queue is full. Rows that the queue has already are passed over. So after any end repeat `add` with the same inputs in the same order. Further inputs may follow; other ones are refused. Inputs of a list are added again if Redis loses some meanwhile; for a function that is an error of reason "lost". A function that returns nil and a reason fails.
---@param run string name of the run: another one screens the same inputs anew
---@param inputs riskscreen.QueueInput[]|fun(): riskscreen.QueueInput|nil
---@param on_progress? fun(totals: { rows: integer, added: integer, invalid: integer }) of all rows so far
---@return { rows: integer, added: integer, invalid: integer }|nil totals
---@return riskscreen.Error|nil err
function riskscreen_Queue:add(run, inputs, on_progress) end

---A worker, which screens the jobs of the queue with a client.
---@param given riskscreen.QueueWorkerOptions
---@return riskscreen.QueueWorker
function riskscreen_Queue:worker(given) end

---Reads results in their order.
---@param after? string position of the last result that was read; by default the first one is read
---@param seconds? number how long to wait for a result
---@return riskscreen.QueueResult[]|nil results at most 500
---@return riskscreen.Error|nil err
function riskscreen_Queue:results(after, seconds) end

---Removes results, because they were read.
---@param read riskscreen.QueueResult[]|string the results; or a position: all up to it. After a failover with lost changes a position may be that of a result that nobody has read.
---@return integer|nil removed
---@return riskscreen.Error|nil err
function riskscreen_Queue:forget(read) end

---The state of the queue.
---@return riskscreen.QueueStatus|nil
---@return riskscreen.Error|nil err
function riskscreen_Queue:status() end

---The state of the queue in Prometheus' text format.
---@return string|nil
---@return riskscreen.Error|nil err
function riskscreen_Queue:metrics() end

---The dead letters, oldest first: inputs that no worker could finish.
---@param after? string
---@return { position: string, id: string, source: string, row: integer, input: riskscreen.QueueInput, reason: string }[]|nil letters at most 500
---@return riskscreen.Error|nil err
function riskscreen_Queue:dead(after) end

---Makes all dead letters jobs again.
---@return integer|nil count
---@return riskscreen.Error|nil err
function riskscreen_Queue:requeue() end

---Screens jobs until `stop` is called, and then finishes the screenings under way. Waits for Redis and for the service where they are away.
---@param how? { drain?: boolean } drain: ends when the queue has no job left
---@return integer|nil finished results
---@return riskscreen.Error|nil err a failure of the set-up, such as a wrong access key
function riskscreen_QueueWorker:run(how) end

---Ends `run` soon: screenings under way are finished, other jobs are left to other workers.
function riskscreen_QueueWorker:stop() end

---@class riskscreen.JournalContext facts about a decision that the decision itself does not hold
---@field address? string the canonical address; otherwise the journal finds it
---@field policy? riskscreen.Policy
---@field identity? string of the decision, by table's identity
---@field source? "service"|"sandbox"|"list"|"cache"|"none"
---@field is_sandbox? boolean the sandbox answered, and no service
---@field outcome? "allow"|"review"|"block" what the decision leads to at a location of a gate
---@field monitor? boolean the location lets every request pass
---@field request_id? string|number
---@field meta? table<string, string>
---@field hide? fun(text: string): string removes the access key
---@field input? any the address as the caller gave it, where the decision has another spelling
local riskscreen_JournalContext = {}

---@class riskscreen.JournalEntry a decoded line
---@field id string
---@field time string UTC, such as 2026-01-31T12:00:00Z
---@field input any the address as the caller gave it
---@field network? any
---@field address? string the canonical address, where the input is one
---@field action riskscreen.Action
---@field reasons string[] the worst first
---@field source "service"|"sandbox"|"list"|"cache"|"none" none: nothing was asked, because there was no valid address
---@field policy? string the fingerprint of the policy
---@field identity? string of the decision: service, account, policy and options; 0.9.0 wrote none
---@field degraded? boolean
---@field stale? boolean
---@field outcome? "allow"|"review"|"block" of a gate: what the decision leads to at its location
---@field monitor? boolean the gate lets every request pass, whatever the outcome
---@field request_id? string|number as the caller gave it
---@field meta? table<string, string> such as the case and the analyst, as the caller gave them
---@field answer? string the SHA-256 of the answer of the service
---@field record? table the whole answer, with the option `record`
---@field lost? integer in place of a decision: how many decisions before this line could not be written
---@field version string of the library
---@field part integer
---@field seq integer
---@field prev string
---@field hash string
local riskscreen_JournalEntry = {}

---@class riskscreen.JournalHead the place in the chain after which the next line comes
---@field part integer the number of the file
---@field seq integer the number of the last line
---@field hash string the hash of the last line
local riskscreen_JournalHead = {}

---@class riskscreen.JournalReport
---@field ok boolean
---@field lines integer
---@field files string[]
---@field faults riskscreen.JournalFault[] the first 100
---@field has_more? boolean there are further faults
---@field first? integer the number of the first line
---@field head? riskscreen.JournalHead after the last line
local riskscreen_JournalReport = {}

---@class riskscreen.JournalFault
---@field file string
---@field line integer in the file; 0: the file as a whole
---@field seq? integer the number in the chain
---@field reason "changed"|"missing"|"moved"|"repeated"|"replaced"|"malformed"|"torn"|"truncated"|"unreadable"
---@field message string
local riskscreen_JournalFault = {}

---@class riskscreen.ReplayRow
---@field seq integer the number of the line
---@field id string
---@field time string
---@field input any
---@field network? any
---@field address? string
---@field identity? string of the recorded decision: service, account, policy and options
---@field before riskscreen.Action the action that was recorded
---@field after? riskscreen.Action the action of the policy; absent where the decision cannot be made again
---@field changed boolean
---@field decision? riskscreen.Decision of the policy
---@field problem? string why the decision cannot be made again
local riskscreen_ReplayRow = {}

---@class riskscreen.JournalOptions
---@field record? boolean
---@field key? string
---@field sync? number|false seconds
---@field max_size? integer bytes
---@field buffer? integer lines
---@field lock_timeout? number seconds
---@field on_failure? fun(err: riskscreen.Error)
---@field clock? fun(): number
---@field sleep? fun(seconds: number)
local riskscreen_JournalOptions = {}

---@class riskscreen.Journal
local riskscreen_Journal = {}

---A journal in a file of JSON lines.
---@param path string
---@param options? riskscreen.JournalOptions
---@return riskscreen.Journal|nil
---@return riskscreen.Error|nil err
function riskscreen.journal.file(path, options) end

---A journal in a store. Several programs may write to it.
---@param store riskscreen.Store
---@param options? riskscreen.JournalOptions
---@return riskscreen.Journal
function riskscreen.journal.store(store, options) end

---Checks a journal. Without a key the chain shows changes by accident, or by someone who does not compute it anew. With a key only its owner can do that. Lines that were cut at the end are found where a head is known: the one in PATH.head, or `head`, kept elsewhere.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param options? { key?: string, head?: riskscreen.JournalHead }
---@return riskscreen.JournalReport|nil report
---@return riskscreen.Error|nil err where the journal cannot be read
function riskscreen.journal.verify(source, options) end

---Iterates over the entries of a journal, the oldest first. A line that cannot be read, a file that cannot be read and missing lines are faults, also at the end of what PATH.head knows. A torn last line is left out: a program may be writing it.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param address? string canonical: only the entries about it
---@param on_fault? fun(fault: riskscreen.JournalFault) told of each fault; the entries after it follow. By default a fault raises an error object
---@return fun(): riskscreen.JournalEntry|nil
function riskscreen.journal.entries(source, address, on_fault) end

---The files of a journal, the oldest first; of another file, the file alone. A head or the first line tells a journal.
---@param path string
---@return string[]
function riskscreen.journal.files(path) end

---Decides the decisions of a journal again. Iterates over a row for each of them, changed or not. It needs a journal with `record = true`.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param policy riskscreen.Policy
---@param on_fault? fun(fault: riskscreen.JournalFault) as for `entries`
---@return fun(): riskscreen.ReplayRow|nil
function riskscreen.journal.replay(source, policy, on_fault) end

---Records a decision. A failure changes nothing of the decision; it is counted and told to `on_failure`, and the next line says how many decisions were lost before it.
---@param decision riskscreen.Decision
---@param context? riskscreen.JournalContext
---@return string|nil id of the line
---@return riskscreen.Error|nil err
function riskscreen_Journal:append(decision, context) end

---Writes the lines that wait in the buffer. Where that fails they stay in it.
---@param limit? integer the most lines to write
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_Journal:flush(limit) end

---The place in the chain. Keep it apart from the journal, for example in a message to yourself: `verify` then finds out whether the journal was cut at its end or written anew.
---@return riskscreen.JournalHead|nil
---@return riskscreen.Error|nil err
function riskscreen_Journal:head() end

---Begins a new file. Only the journal of a file has files.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_Journal:rotate() end

---Counters: lines `written`, decisions `lost` because they could not be recorded, decisions `waiting` in the buffer, and torn lines that were `repaired`.
---@return { written: integer, lost: integer, waiting: integer, repaired: integer }
function riskscreen_Journal:stats() end

---Writes the buffer and notes the head. The journal may be used again after that.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_Journal:close() end

---@class riskscreen.WatchSummary
---@field screened integer
---@field changed integer
---@field failed integer screenings without an answer
---@field waiting integer changes that a receiver has not taken yet
---@field finished boolean all addresses of the source were screened in this cycle
local riskscreen_WatchSummary = {}

---@class riskscreen.Change
---@field id string the same when the change is delivered again
---@field time integer Unix seconds
---@field watch string
---@field address any as the source gave it
---@field network any
---@field action riskscreen.Action
---@field before? riskscreen.Action nil for an address that is screened for the first time
---@field risks string[] such as "high / hack"
---@field risks_before? string[]
---@field reasons string[]
---@field fields? table<string, string> the other columns of its row
---@field test? boolean a test of the receiver: no address was screened
local riskscreen_Change = {}

---@class riskscreen.WatchRequest
---@field source string|any[]|fun(): (fun(): any)
---@field network? any
---@field store riskscreen.Store
---@field name? string
---@field every? number seconds
---@field rate? number screenings a second
---@field daily_cap? integer
---@field policy? riskscreen.Policy
---@field include? riskscreen.LookupName[]
---@field meta? table<string, string>
---@field on_change? fun(change: riskscreen.Change): any, any
---@field webhook? { url: string, secret: string, timeout?: number }
---@field on_failure? fun(message: string)
local riskscreen_WatchRequest = {}

---@class riskscreen.Watch
local riskscreen_Watch = {}

---Screens every address once, as fast as `rate` allows, and delivers the changes. A cycle that was interrupted goes on where it ended. For a timer such as cron.
---@return riskscreen.WatchSummary|nil summary
---@return riskscreen.Error|nil err the source or the store failed, or another process watches
function riskscreen_Watch:once() end

---Watches until `stop`: a cycle every `every` seconds, its screenings spread over that time.
---@param on_cycle? fun(summary: riskscreen.WatchSummary) called after each cycle
---@return true|nil
---@return riskscreen.Error|nil err the source or the store failed, or another process watches
function riskscreen_Watch:run(on_cycle) end

---Ends `run` soon, after the screening under way.
function riskscreen_Watch:stop() end

---Sends one change that is marked as a test to each receiver. It needs no lock, and keeps nothing.
---@return true|nil
---@return string|nil message of a receiver that did not take it
function riskscreen_Watch:test() end

---@class riskscreen.ReportSummary
---@field rows integer
---@field actions table<riskscreen.Action, integer>
---@field unreadable integer lines that are not counted
---@field notes string[] the faults of the input, as the page shows them
local riskscreen_ReportSummary = {}

---@class riskscreen.ReportRequest
---@field input string|file*|(string|file*)[] files of decisions: paths, or open files
---@field output string|file* the page: a path that is replaced when the page is complete, or an open file
---@field title? string of the page
---@field time? number Unix seconds at which the page is made, now by default
local riskscreen_ReportRequest = {}

---Writes the report of decisions. The input may be as large as the page may be: a million rows.
---@param request riskscreen.ReportRequest
---@return riskscreen.ReportSummary|nil summary
---@return riskscreen.Error|nil err
function riskscreen.report.write(request) end

---@class riskscreen.explore.World the parts of a program's world beside its client
---@field inputs riskscreen.explore.Input[]
---@field store riskscreen.Store it outlives the program
---@field secret { value: string, header: string } of the webhooks, for an inbox
---@field pay fun(id: string) pays an input
---@field hold fun(id: string) leaves an input to a person
---@field paid fun(id: string): boolean asks whether an input was paid
---@field receive fun(receiver: riskscreen.Inbox|function) receives the webhooks from now on
---@field client fun(options?: table): riskscreen.Client a client with more options
---@field now fun(): number seconds
---@field sleep fun(seconds: number)
---@field spawn fun(body: fun(...), ...): riskscreen.Task
---@field gather fun(bodies: function[]): any[], any[]
local riskscreen_explore_World = {}

---@class riskscreen.explore.Input a payment to decide about
---@field id string
---@field address string the receiver
---@field network string
---@field hash string of the transaction
local riskscreen_explore_Input = {}

---@class riskscreen.explore.Finding
---@field problem "unallowed"|"twice"|"never"|"unheld"
---@field id string of the input
---@field message string
---@field schedule riskscreen.explore.Fault[] for `replay`
---@field steps string[] the steps of the run, each with its fault
local riskscreen_explore_Finding = {}

---@class riskscreen.explore.Fault
---@field at string the step that it strikes, such as "request 2"
---@field fault string
local riskscreen_explore_Fault = {}

---@class riskscreen.explore.Explored
---@field schedules integer
---@field faults integer of those that were explored last, unless they were drawn at random
---@field random integer the number of those that were drawn at random
local riskscreen_explore_Explored = {}

---Explores a program.
---@param program fun(client: riskscreen.Client, world: riskscreen.explore.World)|table the program, or the options with the program among them
---@param options? table
---@return riskscreen.explore.Finding|nil finding the shortest schedule that goes wrong; nil if none does
---@return riskscreen.explore.Explored explored
function riskscreen.explore.run(program, options) end

---Runs a program once, under one schedule.
---@param program fun(client: riskscreen.Client, world: riskscreen.explore.World)|table
---@param schedule riskscreen.explore.Fault[] a fault whose step is not reached, or cannot fail so, does not strike
---@param options? table
---@return riskscreen.explore.Finding|nil finding
function riskscreen.explore.replay(program, schedule, options) end

---@class riskscreen.nginx.GateRequest the address, and any option of a location
---@field address? table
---@field network? table
local riskscreen_nginx_GateRequest = {}

---@class riskscreen.nginx.Gate
local riskscreen_nginx_Gate = {}

---Decides about the request that is served. The request goes on, or ends here with the location's answer. The address is the table's `address`; without a table, the gate's own sources are read.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision|nil decision nil if monitor mode failed to decide
---@return string|nil source
function riskscreen_nginx_Gate:enforce(request) end

---Decides, and leaves acting to the caller: `on_unknown` and the like do not apply.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision decision shared: do not change it
---@return string source
function riskscreen_nginx_Gate:decide(request) end

---The same gate with other options, for one location. Make it once, beside the gate.
---@param overrides table
---@return riskscreen.nginx.Gate
function riskscreen_nginx_Gate:location(overrides) end

---Forgets what is cached about an address, in all workers, and on all machines that share a Redis.
---@param address string
---@param network? string without it, all networks
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function riskscreen_nginx_Gate:purge(address, network) end

---Begins to fetch the account's lists, to listen for purges of other machines, and to look at the files of local lists. Call it in init_worker_by_lua. Without this call, a worker begins with its first request.
function riskscreen_nginx_Gate:start() end

---Writes what the journal has not written yet: for exit_worker_by_lua. Without it a worker that is stopped by SIGTERM loses the decisions of the last `journal.interval`. Without the option `journal` it does nothing.
function riskscreen_nginx_Gate:stop() end

---Serves the metrics for Prometheus: a content handler.
function riskscreen_nginx_Gate:metrics() end

---Serves the state of the gate, as JSON or, for a browser, as a page: a content handler.
function riskscreen_nginx_Gate:status() end

---Receives a webhook of the service: a content handler.
function riskscreen_nginx_Gate:webhook() end

---@class riskscreen.nginx.InboxOptions
---@field dict string
---@field handlers? table<string, fun(event: riskscreen.WebhookEvent): any>
---@field secret? { value: string|string[], header?: string, query?: string, path?: boolean }
---@field allow? string[]
---@field verify? fun(body: string, headers: table<string, string>, delivery: riskscreen.Delivery): boolean|nil, string?
---@field accept_unauthenticated? boolean
---@field fetch? fun(request_id: string): table|nil, any
---@field remember? { limit?: integer, ttl?: number }
---@field early? { ttl?: number }
---@field lease? number
---@field poll? number
---@field on_failure? fun(failure: any, event: riskscreen.WebhookEvent)
local riskscreen_nginx_InboxOptions = {}

---@type string the key of an account with empty lists
riskscreen.sandbox.default_key = nil

---@type string the key of an account with filled lists
riskscreen.sandbox.lists_key = nil

---@type riskscreen.sandbox.Scenario[] all scenarios
riskscreen.sandbox.scenarios = nil

---@type table the sandbox's own paths, for the option `endpoints`
riskscreen.sandbox.endpoints = nil

---@class riskscreen.sandbox.HttpServer
---@field url string
---@field access_key? string the default key, if the service knows it
---@field endpoints table for the client option `endpoints`
---@field service riskscreen.sandbox.Service
local riskscreen_sandbox_HttpServer = {}

---@class riskscreen.sandbox.Seen a request in the log, without its key
---@field method string
---@field target string
---@field operation? string
---@field parameters? table
---@field status integer
---@field fault? string the kind of its fault
local riskscreen_sandbox_Seen = {}

---@class riskscreen.sandbox.Fault
---@field kind "delay"|"status"|"hang"|"reset"|"truncate"|"drip"|"invalid-json"|"duplicate"|"html"|"empty"
---@field delay? number seconds before anything else happens
---@field status? integer the HTTP status; required by "status", optional for the kinds that replace the body
---@field retry_after? integer seconds, sent as Retry-After
---@field bytes? integer the part of the body that "truncate" sends, or the size of the pieces of "drip"
---@field every? number seconds between the pieces of "drip"
---@field count? integer the number of requests that it hits; absent: all
---@field nth? integer the first matching request that it hits (default 1)
---@field match? { operation?: string, address?: string } the requests that it hits; absent: all
local riskscreen_sandbox_Fault = {}

---@class riskscreen.sandbox.Delivery how the webhook of a transaction is delivered
---@field late? number seconds after the transaction is done
---@field copies? integer the number of deliveries of the same event
---@field never? boolean
---@field hold? boolean only after the next one, that is out of order
---@field wrong? string the field that is wrong
---@field nth? integer the first transaction that it applies to (default 1)
---@field count? integer the number of transactions (default all)
local riskscreen_sandbox_Delivery = {}

---@class riskscreen.sandbox.Service
local riskscreen_sandbox_Service = {}

---@class riskscreen.sandbox.Scenario
---@field name string
---@field address string
---@field network string a network under which the address makes sense; the answer is the same under any other
---@field what string the answer, for people
local riskscreen_sandbox_Scenario = {}

---A client of a service in the same process, without a socket.
---@param options? table a client's options, the settings of a service (or `service`, an existing one), and `sleep`, a function for every wait of the service and the client (default: they really wait). With an `inbox` the service delivers its webhooks into it.
---@return riskscreen.Client
---@return riskscreen.sandbox.Service
function riskscreen.sandbox.client(options) end

---Serves a service over HTTP on this machine. Blocking calls in this process drive it; other programs call its `step`.
---@param options? table `host` (default 127.0.0.1), `port` (default 0: any free one), and the settings of a service, or `service`, an existing one
---@return riskscreen.sandbox.HttpServer? server `url`, `access_key`, `endpoints`, `service`, `close()`
---@return riskscreen.Error? err
function riskscreen.sandbox.serve(options) end

---A service with its own accounts and state; `service:handle` answers requests.
---@param options? table the settings of table
---@return riskscreen.sandbox.Service
function riskscreen.sandbox.new(options) end

---The scenario of a name.
---@param name string
---@return riskscreen.sandbox.Scenario
function riskscreen.sandbox.scenario(name) end

---Makes all requests fail, or those that match.
---@param fault riskscreen.sandbox.Fault
function riskscreen_sandbox_Service:fault(fault) end

---Removes the faults that `fault` added. Those of the scenarios stay.
function riskscreen_sandbox_Service:clear_faults() end

---Sets how the webhooks of later transactions are delivered: late, twice, out of order, never, or with a wrong field.
---@param delivery riskscreen.sandbox.Delivery
function riskscreen_sandbox_Service:deliver(delivery) end

---Delivers the due webhooks into an inbox of this process, with redeliveries, and returns the inbox's statuses.
---@param inbox riskscreen.Inbox
---@param headers? table<string, string>
---@param where? table the last argument of `inbox:deliver`
---@return integer[]
function riskscreen_sandbox_Service:deliver_to(inbox, headers, where) end

---The last `log_size` requests, oldest first.
---@return riskscreen.sandbox.Seen[]
function riskscreen_sandbox_Service:requests() end

---The state of an account: its lists and usage.
---@param key string
---@return table?
function riskscreen_sandbox_Service:account(key) end

return riskscreen
