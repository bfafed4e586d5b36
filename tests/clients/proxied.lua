-- wrk through a forward proxy, which wrk does not know: the request line has a whole URL. After `--`: that URL, and
-- the pause in milliseconds after each response of a connection. Prints one JSON line.

init = function(arguments)
  wrk.path = arguments[1]
  wrk.headers["Host"] = arguments[1]:match("//([^/]+)")
  local pause = tonumber(arguments[2])
  if pause then delay = function() return pause end end
end

done = function(summary, latency)
  local errors = summary.errors
  print(string.format(
    '{"perSecond":%d,"requests":%d,"p50":%.3f,"p99":%.3f,"greatest":%.3f,"broken":%d,"statuses":%d}',
    summary.requests / summary.duration * 1e6, summary.requests,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
