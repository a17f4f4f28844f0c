// A plain web server on Node: one path.
import http from "node:http";

const body = "Hello, World!";
const server = http.createServer((_, response) => {
  response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": body.length });
  response.end(body);
});
server.listen(Number(process.argv[2]), "127.0.0.1");
