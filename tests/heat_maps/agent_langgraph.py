"""An agent of LangGraph, as its quickstart builds one."""

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tools import get_lat_lng, get_weather

TOOLS = [get_lat_lng, get_weather]
MODEL = ChatOpenAI(model="gpt-5").bind_tools(TOOLS)


def model(state: MessagesState):
    system = SystemMessage("You are a helpful assistant. Use your tools.")
    return {"messages": [MODEL.invoke([system, *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_edge(START, "model")
builder.add_conditional_edges("model", tools_condition)
builder.add_edge("tools", "model")
agent = builder.compile()
