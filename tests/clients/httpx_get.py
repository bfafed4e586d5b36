"""One exchange by `httpx`; `--http2` offers HTTP/2."""

import ssl

import httpx

import told

flags = told.arguments(http2=False)


def ask():
    trust = ssl.create_default_context(cafile=flags.ca)
    with httpx.Client(
        proxy=flags.proxy,
        verify=trust,
        http2=flags.http2,
        timeout=flags.timeout,
        trust_env=False,
    ) as client:
        answer = client.request(flags.method, flags.url, content=flags.data)
        headers = [*answer.headers.multi_items(), ("http-version", answer.http_version)]
        told.answered(answer.status_code, headers, answer.content)


told.run(ask)
