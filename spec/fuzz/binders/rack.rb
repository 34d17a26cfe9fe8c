# Reads texts from standard input, one hex line each, and prints all values of "to" in Rack's parsers, as JSON.
require "json"
require "rack"

def leaves(value)
  case value
  when nil then []
  when Hash then value.values.flat_map { |one| leaves(one) }
  when Array then value.flat_map { |one| leaves(one) }
  else [value.to_s.unpack1("H*")]
  end
end

def read
  leaves(yield["to"])
rescue StandardError
  []
end

$stdout.sync = true
while (line = gets)
  kind, hex = line.split
  text = [hex.to_s].pack("H*")
  found = if kind == "json"
    { "ruby json" => read { JSON.parse(text) } }
  else
    { "rack" => read { Rack::Utils.parse_nested_query(text) }, "rack, flat" => read { Rack::Utils.parse_query(text) } }
  end
  puts JSON.generate(found)
end
