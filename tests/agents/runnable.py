"""Agents of LangChain's own parts, which a suite's `type: python` asks: a chat model, a tool, Runnables.

`agent` tries its tool again and says what failed; `careless` lets what its tool raises through.
"""

import json

import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage, convert_to_openai_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_function

import models

HTTP = httpx.Client(timeout=20)
CLIENT = models.OpenAI()


class Model(BaseChatModel):
    """The shop's model, by OpenAI's client."""

    @property
    def _llm_type(self):
        return "shop"

    def bind_tools(self, tools, **more):
        return self.bind(tools=[convert_to_openai_function(one) for one in tools], **more)

    def _generate(self, messages, stop=None, run_manager=None, tools=None, **more):
        text, wishes, is_whole = CLIENT.ask(convert_to_openai_messages(messages), tools, {})
        if not is_whole:
            raise ConnectionError("the model's answer broke off")
        calls = [
            {"id": wish["id"], "name": wish["function"]["name"], "args": json.loads(wish["function"]["arguments"])}
            for wish in wishes
        ]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls))])


@tool
def search(text: str) -> str:
    """Searches the web."""
    answer = HTTP.get("http://search.test/", params={"q": text})
    answer.raise_for_status()
    return answer.text


def patient(step, errors):
    pauses = {"initial": 0.1, "max": 1, "exp_base": 2, "jitter": 0.1}
    return step.with_retry(retry_if_exception_type=errors, exponential_jitter_params=pauses, stop_after_attempt=3)


def found(look_up):
    """The messages, and what the tools that the model wished for have found."""

    async def told(state):
        results = [
            ToolMessage(await look_up.ainvoke(call["args"]), tool_call_id=call["id"])
            for call in state["wish"].tool_calls
        ]
        return [*state["messages"], state["wish"], *results]

    return RunnableLambda(told)


def built(look_up):
    prompt = ChatPromptTemplate([("system", "You look things up."), ("human", "{question}")])
    model = Model()
    asked = patient(model.bind_tools([search]), (ConnectionError,))
    return (
        prompt
        | RunnableLambda(lambda value: value.to_messages())
        | {"messages": RunnablePassthrough(), "wish": asked}
        | found(look_up)
        | patient(model, (ConnectionError,))
        | StrOutputParser()
    )


agent = built(
    patient(search, (httpx.HTTPError,)).with_fallbacks([RunnableLambda(lambda _: "error: the search is unavailable")])
)
careless = built(search)
