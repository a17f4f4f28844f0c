// Node's HTTP/2 server for the end-to-end tests: in the clear and over TLS, with what it saw on a port of its own.
//
// usage: node http2.mjs CLEAR_PORT TLS_PORT TRUTH_PORT KEY CERTIFICATE STREAMS_AT_ONCE
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";

const [clearPort, tlsPort, truthPort, key, cert, streamsAtOnce] = process.argv.slice(2);
const settings = { maxConcurrentStreams: Number(streamsAtOnce) };
const seen = { connections: 0, requests: 0, most_at_once: 0 };
let atOnce = 0;

function answer(request, response) {
  seen.requests += 1;
  atOnce += 1;
  seen.most_at_once = Math.max(seen.most_at_once, atOnce);
  response.on("close", () => { atOnce -= 1; });
  const { stream } = response;
  switch (request.url) {
    case "/missing": response.writeHead(404).end(); break;
    case "/broken": response.writeHead(503).end("busy"); break;
    case "/slow": setTimeout(() => response.end("hello"), 2); break;
    case "/reset": stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR); break;
    case "/refused": stream.close(http2.constants.NGHTTP2_REFUSED_STREAM); break;
    case "/cut": stream.respond({ ":status": 200, "content-length": 10 }); stream.end("abc"); break;
    case "/gone": stream.session.destroy(); break;
    case "/silent": break;
    // Every tenth request of a connection is its last.
    case "/leaving": if (stream.id % 20 === 19) stream.session.close(); response.end("hello"); break;
    default: response.end("hello");
  }
}

const clear = http2.createServer({ settings }, answer);
clear.on("session", () => { seen.connections += 1; });
const pair = { key: readFileSync(key), cert: readFileSync(cert) };
const secure = http2.createSecureServer({ ...pair, settings, allowHTTP1: true }, answer);
secure.on("secureConnection", () => { seen.connections += 1; });
const truth = http.createServer((_, response) => response.end(JSON.stringify(seen)));

// The last to listen is the one that is waited for.
clear.listen(Number(clearPort), "127.0.0.1", () =>
  secure.listen(Number(tlsPort), "127.0.0.1", () => truth.listen(Number(truthPort), "127.0.0.1")));
