"""An agent that asks its one tool, whatever it is asked, and says what came of it.

    weather_agent.py TOOL [direct]

`direct` goes past the proxy.
"""

import sys
import urllib.request

sys.stdin.read()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({})) if "direct" in sys.argv else urllib.request.build_opener()
try:
    opener.open(sys.argv[1], timeout=60).read()
    print("it is sunny")
except OSError:
    print("the weather is unavailable")
