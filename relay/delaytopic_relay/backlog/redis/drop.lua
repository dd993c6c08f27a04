-- Forget slices and id entries, if the shard's position is the expected one: index first, data last.
--
-- KEYS[1]    position   string
-- KEYS[2]    slices     sorted set: slice names by start
-- KEYS[3]    counts     hash: slice name -> records
-- KEYS[4]    ids        hash: id -> entry
-- KEYS[5..]  the list key of each slice; it ends with the slice name
-- ARGV[1]    the expected position
-- ARGV[2]    where in a list key the slice name begins
-- ARGV[3..]  the ids
--
-- Answers the shard's position, '' for none; nothing is done if that is not the expected one.
local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then
  return found
end
if #ARGV > 2 then
  redis.call('HDEL', KEYS[4], unpack(ARGV, 3))
end
if #KEYS > 4 then
  local names = {}
  local name_at = tonumber(ARGV[2])
  for index = 5, #KEYS do
    names[index - 4] = string.sub(KEYS[index], name_at)
  end
  redis.call('ZREM', KEYS[2], unpack(names))
  redis.call('HDEL', KEYS[3], unpack(names))
  redis.call('UNLINK', unpack(KEYS, 5))
end
return found
