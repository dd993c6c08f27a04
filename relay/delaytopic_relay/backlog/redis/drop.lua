-- Forget slices and id entries, if the shard's version is the expected one: index first, data last.
--
-- KEYS[1]    position   string
-- KEYS[2]    slices     sorted set: slice names by start
-- KEYS[3]    counts     hash: slice name -> records
-- KEYS[4]    ids        hash: id -> entry
-- KEYS[5]    sizes      hash: slice name -> bytes of its segments; total -> of all
-- KEYS[6..]  the list key of each slice; it ends with the slice name
-- ARGV[1]    the expected version
-- ARGV[2]    where in a list key the slice name begins
-- ARGV[3..]  the ids
--
-- Answers as put.lua does; nothing is done if the version is not the expected one.
local function state(version)
  local bytes = tonumber(redis.call('HGET', KEYS[5], 'total') or 0)
  return {version, bytes or 0, redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[4])}
end

local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then
  return state(found)
end
if #ARGV > 2 then
  redis.call('HDEL', KEYS[4], unpack(ARGV, 3))
end
if #KEYS > 5 then
  local names = {}
  local name_at = tonumber(ARGV[2])
  local freed = 0
  for index = 6, #KEYS do
    local name = string.sub(KEYS[index], name_at)
    names[index - 5] = name
    freed = freed + (tonumber(redis.call('HGET', KEYS[5], name) or 0) or 0)
    redis.call('HDEL', KEYS[5], name)
  end
  redis.call('HINCRBY', KEYS[5], 'total', -freed)
  redis.call('ZREM', KEYS[2], unpack(names))
  redis.call('HDEL', KEYS[3], unpack(names))
  redis.call('UNLINK', unpack(KEYS, 6))
end
return state(found)
