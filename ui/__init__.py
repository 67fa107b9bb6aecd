"""The chat window: answers as pages, a chat as a generator, and Gradio around both."""

import os

# Gradio reads it when it is imported; without it every page view is reported to its makers.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
