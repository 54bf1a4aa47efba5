-- http-request lua.subak ADDRESS [HEADER...]
--
-- Asks the listener of Subak that a frontend of this HAProxy at ADDRESS stands for
-- whether the request may pass, and sets
--
--   txn.subak              200, 429, 403 or 400; not set when Subak did not answer
--   txn.subak_retry_after  and for a 429 what to hand on to the client
--   txn.subak_ratelimit
--   txn.subak_policy
--
-- It has no loop and keeps nothing: timeouts, retries, health checks and the pool
-- of connections are HAProxy's, as its configuration says.

local fields = {
	["retry-after"] = "txn.subak_retry_after",
	["ratelimit"] = "txn.subak_ratelimit",
	["ratelimit-policy"] = "txn.subak_policy",
}
local statuses = { [200] = true, [429] = true, [403] = true, [400] = true }

-- Not for Subak: they are about the client's connection or body, or would let
-- the client describe another request than its own.
local dropped = {
	["connection"] = true, ["keep-alive"] = true, ["te"] = true, ["trailer"] = true,
	["transfer-encoding"] = true, ["upgrade"] = true, ["proxy-connection"] = true,
	["content-length"] = true, ["expect"] = true,
	["x-forwarded-method"] = true, ["x-forwarded-uri"] = true, ["x-forwarded-host"] = true,
}

core.register_action("subak", { "http-req" }, function(txn, address)
	local headers = {}
	for name, values in pairs(txn.http:req_get_headers()) do
		if not dropped[name] then
			headers[name] = {}
			for i = 0, #values do
				headers[name][i + 1] = values[i]
			end
		end
	end
	headers["x-original-method"] = { txn.sf:method() }
	headers["x-original-uri"] = { txn.sf:pathq() }
	headers["x-forwarded-for"] = { txn.sf:src() }

	local answer = core.httpclient():get({
		url = "http://subak/v1/check", dst = address, headers = headers,
	})
	if answer == nil or not statuses[answer.status] then
		return
	end
	txn:set_var("txn.subak", answer.status)
	for name, variable in pairs(fields) do
		local values = answer.headers and answer.headers[name]
		if values then
			txn:set_var(variable, values[0])
		end
	end
end, 1)
