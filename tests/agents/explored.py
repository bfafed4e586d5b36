"""An agent with five planted bugs, for `squall explore`. Each needs one fault on one call; the last needs two.

| fault | call | bug |
|---|---|---|
| auth_error | the first of the model | it has no answer for 401 |
| empty | search | it reads the first hit of no hits |
| html_error | stock | it repeats the page to the user |
| truncated_response | the second of the model | it takes an unfinished answer for a whole one |
| error on search, and error on book | | its apology names the hit that it does not have |

`repaired` is the same agent without them.
The last word of the prompt is the address of the tools.
"""

import json
import urllib.error
import urllib.request


def call(method, url, body=None):
    """Status and body; status 0 if there is no response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except Exception:
        return 0, ""


def document(status, body):
    """The JSON of a good response, else None."""
    try:
        return json.loads(body) if status == 200 else None
    except ValueError:
        return None


def model(world, question):
    messages = [{"role": "user", "content": question}]
    status, body = call("POST", world + "/v1/chat/completions", {"model": "m", "messages": messages})
    answer = document(status, body)
    try:
        return status, answer["choices"][0]["message"]["content"] or "", answer["choices"][0]["finish_reason"]
    except (TypeError, KeyError, IndexError):
        return status, "", "error"


SORRY = "Sorry, nothing was booked."


def answer(prompt, is_repaired):
    world = prompt.split()[-1]
    status, plan, _ = model(world, "What is needed to book a room?")
    if status == 401 and not is_repaired:
        raise RuntimeError("not allowed")
    if not plan:
        return SORRY

    searched, body = call("GET", world + "/search")
    hits = document(searched, body)
    if searched == 200 and body == "" and not is_repaired:
        raise IndexError("no hits")
    hit = hits.get("hit") if isinstance(hits, dict) else None
    if hit is None:
        # Another index, which has no names.
        hits = document(*call("GET", world + "/index"))
        if not isinstance(hits, dict) or "id" not in hits:
            return SORRY

    status, body = call("GET", world + "/stock")
    if status == 502 and not is_repaired:
        return body
    if not isinstance(document(status, body), dict):
        return SORRY

    status, body = call("POST", world + "/book", {"id": 7})
    booked = document(status, body)
    if not isinstance(booked, dict) or "booking" not in booked:
        if searched == 503 and status == 503 and not is_repaired:
            return "Sorry, there is no room in " + hit["name"]
        return SORRY

    _, text, finish = model(world, "Say that booking 12 is done.")
    if finish == "length" and not is_repaired:
        return text + " [unfinished]"
    return "Booked: 12."


def planted(prompt):
    return answer(prompt, is_repaired=False)


def repaired(prompt):
    return answer(prompt, is_repaired=True)
