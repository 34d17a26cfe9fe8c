# OpenResty with the gate of examples/nginx/gate.conf. In the checkout: docker build -f docker/openresty.Dockerfile -t gate .
# The compiled decoder needs no libcurl. Replace gate.conf by your own configuration.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make cmake pkg-config libluajit2-5.1-dev
COPY . /source
RUN cmake -S /source -B /build -DRISKSCREEN_LUA=luajit -DRISKSCREEN_PARTS=decoder && cmake --build /build

FROM openresty/openresty:1.25.3.1-0-bookworm
COPY lua/riskscreen /usr/local/openresty/site/lualib/riskscreen
COPY --from=build /build/riskscreen/decoder.so /usr/local/openresty/site/lualib/riskscreen/decoder.so
COPY examples/nginx/gate.conf /etc/riskscreen/gate.conf
RUN sed -i '/^load_module/d; /^pid/d; s|^error_log .*|error_log stderr notice;|; s|listen 127.0.0.1:8080|listen 8080|' /etc/riskscreen/gate.conf
CMD ["/usr/local/openresty/bin/openresty", "-c", "/etc/riskscreen/gate.conf", "-g", "daemon off;"]
