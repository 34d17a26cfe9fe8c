---@meta
-- Written by tools/generate.lua from the library's tables, for editors.

---@alias riskscreen.activity_network "ethereum"|"eth"|"tron"|"btc"|"bsc"
---@alias riskscreen.direction "in"|"out"
---@alias riskscreen.freeze_network "ethereum"|"eth"|"tron"
---@alias riskscreen.granularity "day"|"month"
---@alias riskscreen.network "ethereum"|"eth"|"tron"|"btc"|"bsc"|"polygon"|"arbitrum"|"optimism"|"avalanche"|"base"|"zksync"|"merlin"|"kaia"|"iotex"|"ftm"|"theta"|"etc"|"lumia"|"solana"|"doge"|"ltc"
---@alias riskscreen.risk_level "high"|"generally-high"|"low"|"whitelist"
---@alias riskscreen.risk_source "Provider"|"Community"|"User-Defined"
---@alias riskscreen.risk_type "black-gray-goods"|"online-gambling"|"scam"|"hack"|"launder-money"|"sanction"|"frozen"|"politics"|"drug"|"gun"|"terrorist"|"porn"|"controlled-substance"|"bloodiness"|"religion"|"csam"
---@alias riskscreen.usage_group "endpoint"|"user"|"org"

---@class riskscreen.ClientOptions
---@field base_url? string URL of the service: https, or http to this machine. Required unless `transport` is given.
---@field access_key string|function The access key, or a function that returns it before every request.
---@field timeout? number Time limit of a whole call.
---@field attempt_timeout? number Time limit of one request of a call; by default that of the call.
---@field connect_timeout? number Time limit of connecting, name lookup and TLS included.
---@field concurrency? integer Maximum number of requests at a time. Further requests wait, and the wait counts as their time.
---@field max_response_size? integer Longest answer that is read, after decompression.
---@field headers? table More headers for every request.
---@field user_agent? string Name of the client for the service; by default riskscreen and its version.
---@field http_version? "auto"|"1.1"|"2" HTTP version; auto takes 2 where TLS offers it.
---@field compression? boolean Whether compressed answers are accepted.
---@field proxy? string URL of a proxy; the environment's proxy variables are not read.
---@field ca_file? string PEM file of the trusted authorities.
---@field client_cert? string PEM file of the client's certificate.
---@field client_key? string PEM file of that certificate's key.
---@field unix_socket? string Unix-domain socket to connect to.
---@field endpoints? table Method and path (and envelope) of operations by name, such as kyt_result = { method = 'GET', path = '/…/{requestId}' }: for operations whose path is not published.
---@field usage_parameters? table Names on the wire of the usage query's parameters, which the interface does not publish.
---@field transaction_parameters? table Name on the wire of a transaction's `custom_id`, which the interface shows in results alone.
---@field transport? function Sends requests in place of the library's HTTP: transport(request) --> reply | nil, failure.
---@field policy? table Policy of `screen`; by default the default policy.
---@field clock? function Returns Unix seconds, for dates from the service; by default os.time.
---@field random? function Returns a number from 0 up to 1, for the jitter of waits; by default its own generator.
---@field runtime? table How time passes, in place of this program's own: now(), sleep(seconds) and tasks; with transport(settings) also how requests travel.
---@field polling? table When the client asks for a transaction's result, if `endpoints.kyt_result` is set: `first`, `growth`, `jitter`, `ceiling`, `deadline`.
---@field final_statuses? table Values of `status` that make a transaction's result final; by default 1003 alone.
---@field inbox? table Inbox whose webhooks bring results, made by `riskscreen.webhook.inbox`.
---@field retry? table|boolean When a failed request is sent again; false: never.
---@field rate_limit? table The token bucket at which calls wait for their turn.
---@field breaker? table|boolean When a failing service gets no requests for a while; true: with the defaults. Inside nginx it is on by default.
---@field hedge? table|boolean When a late lookup is sent a second time; true: with the defaults.
---@field shared_dict? string Inside nginx: the `lua_shared_dict` in which all workers have one circuit and one `rate_limit`.
---@field shared_as? string Name of the shared state; clients with the same name share it. By default the base_url.
---@field on? table Hooks: functions that get a description of what happens to a call.

---@class riskscreen.CallOptions
---@field timeout? number Time limit of this call.
---@field attempt_timeout? number Time limit of one request of this call.
---@field headers? table More headers for this call's requests.
---@field retry? table|boolean This call's settings; the client's hold for the others.
---@field priority? "high"|"normal"|"low" The call's turn under `rate_limit`; by default normal.
---@field traceparent? string The trace of the call in the form of W3C Trace Context, passed on to the service unchanged.

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
---@return any|nil value
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

---Who an address belongs to.
---@param parameters { address: string, network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return { time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, contract?: boolean, entity?: { entityName?: string, entityCode?: string, entityCategory?: string, entityCategoryCode?: string } }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:entity(parameters, options) end

---Who each of many addresses belongs to.
---@param parameters { addresses: string[], network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return { time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, contract?: boolean, entity?: { entityName?: string, entityCode?: string, entityCategory?: string, entityCategoryCode?: string } }[]|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:entities(parameters, options) end

---The risks of an address.
---@param parameters { address: string, network: riskscreen.network }
---@param options? riskscreen.CallOptions
---@return { time?: integer, address: string, network: riskscreen.network, whitelist?: boolean, risks?: { riskLevel?: riskscreen.risk_level, riskType?: riskscreen.risk_type, riskSource?: riskscreen.risk_source }[] }|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kya:risk(parameters, options) end

---The addresses an address deals with most.
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

---When an address's tokens were frozen.
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

---Asks for the risk of a transaction; the result comes later, by its requestId.
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

---Asks for a transaction's custom risk score.
---@param parameters table
---@param options? riskscreen.CallOptions
---@return any|nil value
---@return riskscreen.Response|riskscreen.Error
function riskscreen_kyt:custom_score(parameters, options) end

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

---@param parameters { network: riskscreen.network, hash: string, tokenContractAddress?: string, outputAddress?: string, direction?: string, customId?: string }
---@param options? riskscreen.CallOptions `timeout` is that of the whole
---@return { requestId?: string, customId?: string, maxScore?: string, status?: integer, dirData?: { in?: table<string, any>, out?: table<string, any> } }|nil result
---@return table|riskscreen.Error
function riskscreen_kyt:screen(parameters, options) end

---@param request_id string
---@param options? { timeout?: number }
---@return { requestId?: string, customId?: string, maxScore?: string, status?: integer, dirData?: { in?: table<string, any>, out?: table<string, any> } }|nil result
---@return table|riskscreen.Error
function riskscreen_kyt:await(request_id, options) end

---@param ticket string
---@return riskscreen.Transaction|nil
---@return riskscreen.Error|nil
function riskscreen_kyt:resume(ticket) end

---@class riskscreen.Transaction
---@field requestId? string
---@field customId? string
local riskscreen_transaction = {}

---@param timeout? number seconds
---@return { requestId?: string, customId?: string, maxScore?: string, status?: integer, dirData?: { in?: table<string, any>, out?: table<string, any> } }|nil result
---@return table|riskscreen.Error
function riskscreen_transaction:await(timeout) end

---@return string
function riskscreen_transaction:ticket() end
