"""One exchange by `requests`."""

import requests

import told

flags = told.arguments()


def ask():
    session = requests.Session()
    session.trust_env = False
    if flags.proxy:
        session.proxies = {"http": flags.proxy, "https": flags.proxy}
    answer = session.request(
        flags.method,
        flags.url,
        data=flags.data,
        verify=flags.ca or True,
        timeout=flags.timeout,
        allow_redirects=False,
    )
    told.answered(answer.status_code, answer.headers.items(), answer.content)


told.run(ask)
