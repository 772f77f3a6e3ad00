# The base image where a registry can be reached: an official Python with nothing installed for it.
ARG BASE
FROM ${BASE}
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip/_bundled \
    && mkdir -p /gistpoint && mkdir -p -m 0755 /sandbox && chmod 0755 /sandbox
