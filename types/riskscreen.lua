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
---@field base_url? string Where the service is: https, or http to this machine. Required unless `transport` is given.
---@field access_key string|function The access key, or a function that returns it and is asked before every request.
---@field timeout? number How long a whole call may take.
---@field attempt_timeout? number How long one request of a call may take; by default as long as the call.
---@field connect_timeout? number How long connecting may take, name lookup and TLS included.
---@field concurrency? integer How many requests may be under way; more wait for their turn, which counts as their time.
---@field max_response_size? integer The longest answer that is read, after decompression.
---@field headers? table More headers for every request.
---@field user_agent? string How the client names itself to the service; by default riskscreen and its version.
---@field http_version? "auto"|"1.1"|"2" The HTTP version; auto takes 2 where TLS offers it.
---@field compression? boolean Whether compressed answers are asked for.
---@field proxy? string URL of a proxy; the environment's proxy variables are not read.
---@field ca_file? string PEM file of the authorities to trust.
---@field client_cert? string PEM file of the client's certificate.
---@field client_key? string PEM file of that certificate's key.
---@field unix_socket? string Unix-domain socket to connect to.
---@field endpoints? table Method and path (and envelope) of operations by name, such as kyt_result = { method = 'GET', path = '/…/{requestId}' }: for what the interface does not publish.
---@field usage_parameters? table Names on the wire of the usage query's parameters, which the interface does not publish.
---@field transaction_parameters? table Name on the wire of a transaction's `custom_id`, which the interface shows in results alone.
---@field polling? table When results of transactions are asked for, if `endpoints.kyt_result` is set: `first`, `growth`, `jitter`, `ceiling`, `deadline`.
---@field final_statuses? table The values of `status` with which a transaction's result is there; by default 1003 alone.
---@field inbox? table The inbox whose webhooks bring results of transactions, made by `riskscreen.webhook.inbox`.
---@field random? function Returns a number from 0 up to 1, for waits that must not fall together; by default its own.
---@field transport? function Sends the requests in place of the library's own HTTP: transport(request) --> reply | nil, failure.
---@field policy? table What `screen` decides by; without it, the default policy.
---@field clock? function Returns Unix seconds, for dates the service sends; by default os.time.
---@field runtime? table How time passes, in place of this program's own: now(), sleep(seconds) and tasks; with transport(settings) also how requests travel.
---@field retry? table|boolean When a failed request is sent again; false: never.
---@field rate_limit? table How many requests are sent: a token bucket at which calls wait for their turn.
---@field breaker? table|boolean When a failing service is left alone for a while; true: by the defaults. Inside nginx it is on by default.
---@field hedge? table|boolean When a lookup whose answer is late is sent a second time; true: by the defaults.
---@field shared_dict? string Inside nginx: the `lua_shared_dict` in which all workers have one circuit and one `rate_limit`.
---@field shared_as? string What they share it as: so do all clients of one name. By default the base_url.
---@field on? table Functions that are told what happens to a call.

---@class riskscreen.CallOptions
---@field timeout? number How long this call may take.
---@field attempt_timeout? number How long one request of this call may take.
---@field headers? table More headers for this request.
---@field retry? table|boolean This call's own; what it does not name is the client's.
---@field priority? "high"|"normal"|"low" Whether the call passes others that wait under rate_limit; by default normal.
---@field traceparent? string The trace that the call belongs to, passed on to the service.

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
