"""A shop that keeps sessions: what scenarios are tested against. Nothing beyond Python's own library.

POST /login gives a token in JSON and a session in a cookie; everything else wants both, and answers 401 without.
It counts what it saw, and tells it at GET /seen.
"""

import asyncio
import itertools
import json
import sys

SESSIONS = {}
ORDERS = {}
NUMBERS = itertools.count(1)
SEEN = {"login": 0, "items": 0, "item": 0, "place": 0, "check": 0, "refused": 0, "users": {}}


def login(request):
    user = json.loads(request["body"])
    if not user["user"] or not user["password"]:
        return 400, {}, {"error": "who?"}
    number = next(NUMBERS)
    token, session = f"t/{number}+=", f"s{number}"
    SESSIONS[session] = token
    SEEN["login"] += 1
    SEEN["users"][user["user"]] = SEEN["users"].get(user["user"], 0) + 1
    cookies = [f"sid={session}; Path=/; HttpOnly", "elsewhere=1; Path=/elsewhere", "old=1; Max-Age=0"]
    return 200, {"Set-Cookie": cookies}, {"data": {"token": token}}


def is_known(request):
    cookies = request["headers"].get("cookie", "")
    pairs = dict(pair.split("=", 1) for pair in cookies.split("; ") if "=" in pair)
    token = request["headers"].get("authorization", "").removeprefix("Bearer ")
    # One cookie, and the token of this very session: a token of another journey is refused.
    return list(pairs) == ["sid"] and SESSIONS.get(pairs["sid"]) == token


def answer(request):
    method, path = request["method"], request["path"]
    path, _, query = path.partition("?")
    if path == "/seen":
        return 200, {}, SEEN
    if (method, path) == ("POST", "/login"):
        return login(request)
    if not is_known(request):
        SEEN["refused"] += 1
        return 401, {}, {"error": "log in first"}
    if (method, path) == ("GET", "/items"):
        SEEN["items"] += 1
        page = query.removeprefix("page=")
        return 200, {}, {"page": page, "items": [{"id": int(page) * 10}, {"id": 0}]}
    if method == "GET" and path.startswith("/items/"):
        SEEN["item"] += 1
        return 200, {}, {"id": path.removeprefix("/items/")}
    if (method, path) == ("POST", "/orders"):
        order = json.loads(request["body"])
        if not isinstance(order["item"], int) or not isinstance(order["customer"], int):
            return 400, {}, {"error": "numbers are wanted"}
        number = str(next(NUMBERS))
        ORDERS[number] = request["headers"]["idempotency-key"]
        SEEN["place"] += 1
        return 201, {"Location": [f"/orders/{number}"]}, {"order": number}
    if method == "GET" and path.removeprefix("/orders/") in ORDERS:
        SEEN["check"] += 1
        return 200, {}, {"state": "placed"}
    return 404, {}, {"error": "no such thing"}


async def read(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, version = head[0].split(" ")
    headers = {}
    for line in filter(None, head[1:]):
        name, value = line.split(":", 1)
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return {"method": method, "path": path, "version": version, "headers": headers, "body": body}


async def serve(reader, writer):
    try:
        while True:
            request = await read(reader)
            status, headers, value = answer(request)
            body = json.dumps(value).encode()
            lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {text}" for name, texts in headers.items() for text in texts]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            await writer.drain()
            if request["version"] == "HTTP/1.0":
                break
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=4096)
    async with server:
        await server.serve_forever()


asyncio.run(main())
