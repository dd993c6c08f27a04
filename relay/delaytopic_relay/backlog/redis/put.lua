-- Append segments and set id entries, if the shard's version is the expected one.
--
-- KEYS[1]    position   string
-- KEYS[2]    slices     sorted set: slice names by start
-- KEYS[3]    counts     hash: slice name -> records
-- KEYS[4]    ids        hash: id -> entry
-- KEYS[5]    sizes      hash: slice name -> bytes of its segments; total -> of all; position -> as of which write
-- KEYS[6..]  one list key for each segment; it ends with the slice name
-- ARGV[1]    the expected version, '' for none
-- ARGV[2]    the new version
-- ARGV[3]    where in a list key the slice name begins
-- ARGV[4..]  records and data of each segment, then id and entry of each id
--
-- Answers the version that the shard has afterwards (the new one if the put was done, now or before), the bytes of
-- all segments, how many slices there are, and how many ids.
-- A full Redis refuses segments, and nothing else: it looks at the first write of a script, and refuses it if it may
-- take memory. With segments that is the first write here; without any it is one that only frees. What then follows takes
-- a few bytes: a version in the place of another, or entries of ids. So a shard can be claimed and compared, and
-- slices can be dropped, whatever others have filled Redis with.
-- The version comes last, so an error half-way leaves at most segments that a repeat appends once more.
local function state(version)
  local bytes = tonumber(redis.call('HGET', KEYS[5], 'total') or 0)
  return {version, bytes or 0, redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[4])}
end

-- Adds to numbers in a hash, and answers what they were. HINCRBY for each takes Redis up to twice as long. Numbers of
-- 15 digits are exact in Lua.
local function add(key, names, added)
  local known = redis.call('HMGET', key, unpack(names))
  local fields = {}
  for index, name in ipairs(names) do
    if known[index] and (#known[index] > 15 or not string.match(known[index], '^%d+$')) then
      redis.call('HINCRBY', key, name, added[name])  -- raises the error of what is no number, or too large
    end
    fields[#fields + 1] = name
    fields[#fields + 1] = string.format('%d', (known[index] or 0) + added[name])
  end
  redis.call('HSET', key, unpack(fields))
  return known
end

local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] or found == ARGV[2] then
  return state(found)
end
local sized = redis.call('HGET', KEYS[5], 'position')
if #KEYS == 5 then
  redis.call('HDEL', KEYS[5], 'position')
end
redis.call('HSET', KEYS[5], 'position', ARGV[2])
if sized ~= ARGV[1] then
  -- Somebody wrote in between who keeps no sizes: what is there is not counted, until it is dropped.
  redis.call('DEL', KEYS[5])
  redis.call('HSET', KEYS[5], 'position', ARGV[2])
end
local name_at = tonumber(ARGV[3])
local argument = 4
local total = 0
local names = {}
local records = {}
local bytes = {}
for index = 6, #KEYS do
  local name = string.sub(KEYS[index], name_at)
  local data = ARGV[argument + 1]
  redis.call('RPUSH', KEYS[index], data)
  if not records[name] then
    names[#names + 1] = name
  end
  records[name] = (records[name] or 0) + ARGV[argument]
  bytes[name] = (bytes[name] or 0) + #data
  total = total + #data
  argument = argument + 2
end
if #names > 0 then
  local known = add(KEYS[3], names, records)
  add(KEYS[5], names, bytes)
  local scores = {}
  for index, name in ipairs(names) do
    if tonumber(known[index] or 0) == 0 then
      scores[#scores + 1] = string.match(name, '^-?%d+')
      scores[#scores + 1] = name
    end
  end
  if #scores > 0 then
    redis.call('ZADD', KEYS[2], unpack(scores))
  end
end
redis.call('HINCRBY', KEYS[5], 'total', total)
if argument < #ARGV then
  redis.call('HSET', KEYS[4], unpack(ARGV, argument))
end
redis.call('SET', KEYS[1], ARGV[2])
return state(ARGV[2])
