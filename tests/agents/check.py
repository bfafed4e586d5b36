"""An invariant of one's own: whoever searches asks for a text, not for what the model got wrong."""

import json
import sys
from urllib.parse import parse_qs, urlsplit

seen = json.load(sys.stdin)
urls = [urlsplit(exchange["record"]["url"]) for exchange in seen["exchanges"]]
asked = [parse_qs(url.query).get("q", [""])[0] for url in urls if url.hostname == "search.test"]
wrong = [text for text in asked if not text or text[0] in "{["]
if not asked:
    verdict = {"holds": None, "reason": "nothing was searched for"}
elif wrong:
    verdict = {"holds": False, "reason": f"it searched for {wrong[0] or 'nothing'}, which is no text"}
else:
    verdict = {"holds": True, "reason": f"{len(asked)} searches asked for a text"}
print(json.dumps(verdict))
