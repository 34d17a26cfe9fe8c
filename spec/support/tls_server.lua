-- nginx with certificates made for the test, good and bad. Each listens on a Unix-domain socket of its own. Needs
-- openssl and nginx.

local program = require "spec.support.nginx_program"

local CONFIGURATION = [[
MODULES
worker_processes 1;
daemon on;
pid DIR/nginx.pid;
error_log DIR/error.log;
events { worker_connections 256; }
http {
  access_log off;
  # An idle connection ends while a slow machine works through the tests before; a write would fail.
  keepalive_timeout 1h;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  ssl_certificate DIR/good.pem;
  ssl_certificate_key DIR/key.pem;
  server {
    listen unix:DIR/good ssl;
    BACKEND
    location / { return 200 "$server_protocol $connection $request_method $request_uri $http_x_test"; }
  }
  server {
    listen unix:DIR/h2 ssl http2;
    location / { return 200 "$server_protocol $connection $request_method $request_uri $http_x_test"; }
  }
  server { listen unix:DIR/brief ssl; keepalive_timeout 1s; BACKEND }
  server {
    listen unix:DIR/split ssl;
    location ~ ^/to/([0-9]+)/ { content_by_lua_file DIR/split.lua; }
  }
  server { listen unix:DIR/expired ssl; ssl_certificate DIR/expired.pem; BACKEND }
  server { listen unix:DIR/early ssl; ssl_certificate DIR/early.pem; BACKEND }
  server { listen unix:DIR/other ssl; ssl_certificate DIR/other.pem; BACKEND }
  server { listen unix:DIR/untrusted ssl; ssl_certificate DIR/untrusted.pem; BACKEND }
  server { listen unix:DIR/unknown ssl; ssl_certificate DIR/unknown.pem; BACKEND }
  server {
    listen unix:DIR/old ssl;
    ssl_protocols TLSv1 TLSv1.1;
    ssl_ciphers DEFAULT:@SECLEVEL=0;
    BACKEND
  }
  server {
    listen unix:DIR/mutual ssl;
    ssl_client_certificate DIR/ca.pem;
    ssl_verify_client on;
    location / { return 200 "$ssl_client_s_dn"; }
  }
}
]]

-- /to/PORT/… is the answer of the server at that port of this machine to /…. So a client that did not notice the fault
-- would get an answer.
local BACKEND = [[
    location ~ ^/to/([0-9]+)(/.*) {
      proxy_http_version 1.1;
      proxy_pass http://127.0.0.1:$1$2$is_args$args;
    }
]]

-- Every answer of the server at that port is sent in two TLS records: its head, and whatever follows. The connection
-- stays open.
local SPLIT = [[
local port = ngx.var[1]
local client = assert(ngx.req.socket(true))
local function with_body(head)
  local length = tonumber(head:lower():match "\ncontent%-length: *(%d+)") or 0
  return (head:gsub("/to/%d+", "", 1)) .. (length > 0 and client:receive(length) or "")
end
local next_head = client:receiveuntil "\r\n\r\n"
local head = ngx.req.raw_header()
while head do
  local server = ngx.socket.tcp()
  assert(server:connect("127.0.0.1", port))
  assert(server:send(with_body(head)))
  local answer = assert(server:receive "*a")
  local _, last = answer:find("\r\n\r\n", 1, true)
  client:send(answer:sub(1, last))
  client:send(answer:sub(last + 1))
  head = next_head()
  head = head and head .. "\r\n\r\n"
end
]]

-- Elliptic curves, because RSA keys take long to make; one key for all, because only the certificates matter. The
-- unknown authority has the name of the known one.
local CERTIFICATES = [[
set -e
cd DIR
openssl ecparam -name prime256v1 -genkey -noout -out key.pem
openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -subj "/CN=test authority" -days 2 -out ca.pem
openssl ecparam -name prime256v1 -genkey -noout -out unknown_ca.key
openssl req -x509 -new -key unknown_ca.key -subj "/CN=test authority" -days 2 -out unknown_ca.pem
openssl req -x509 -new -key key.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 -out untrusted.pem
cat > ca.cnf <<CNF
[ca]
default_ca = this
[this]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
unique_subject = no
policy = anything
copy_extensions = copy
[anything]
commonName = supplied
CNF
: > index.txt
echo 01 > serial
sign() {
  openssl req -new -key key.pem -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -out request.pem
  openssl ca -batch -notext -config ca.cnf -cert "${5:-ca}.pem" -keyfile "${5:-ca}.key" \
    -in request.pem -out "$1.pem" -startdate "$3" -enddate "$4"
}
sign good localhost 20200101000000Z 20990101000000Z
sign expired localhost 20200101000000Z 20200102000000Z
sign early localhost 20980101000000Z 20990101000000Z
sign unknown localhost 20200101000000Z 20990101000000Z unknown_ca
sign other other.example 20200101000000Z 20990101000000Z
sign client client-one 20200101000000Z 20990101000000Z
openssl ec -in key.pem -aes256 -passout pass:secret -out locked.pem
openssl pkcs8 -topk8 -in key.pem -passout pass:secret -out sealed.pem
cat client.pem locked.pem > bundle.pem
]]

local tls_server = {}

-- Names with a "%" in them would be captures in what replaces a pattern.
local function backend()
  return BACKEND
end

local function run(directory, script, name)
  local path = directory .. "/" .. name
  local file = assert(io.open(path, "w"))
  file:write((script:gsub("DIR", directory):gsub("BACKEND", backend):gsub("MODULES", program.modules)))
  file:close()
  return path
end

local function execute(command)
  local result = os.execute(command)
  assert(result == true or result == 0, "failed: " .. command)
end

--- Starts it; `path(name)` is the path of a socket or a file.
function tls_server.start()
  local directory = os.tmpname()
  os.remove(directory)
  execute("mkdir " .. directory)
  execute("sh " .. run(directory, CERTIFICATES, "make.sh") .. " > " .. directory .. "/make.log 2>&1")
  run(directory, SPLIT, "split.lua")
  local configuration = run(directory, CONFIGURATION, "nginx.conf")
  -- A sanitizer that is loaded into this process is not nginx's.
  local start = "LD_PRELOAD= " .. program.command .. " -p %s -c %s 2> %s/start.log"
  execute(start:format(directory, configuration, directory))
  local server = {}
  function server.path(name)
    return directory .. "/" .. name
  end
  function server.stop()
    execute(("kill $(cat %s/nginx.pid) && rm -rf %s"):format(directory, directory))
  end
  return server
end

return tls_server
