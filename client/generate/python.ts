/** The client for Python: one file with every API, and nothing but the standard library. */
import { readFileSync } from 'node:fs'
import {
  type Argument,
  type Document,
  JSON_TYPE,
  type Operation,
  type Result,
  readOperations,
  toPythonName,
  toSnakeCase,
} from '../../lib/openapi/operations.ts'
import { type Api, MAIN_DOOR } from './apis.ts'
import { PythonTypes } from './python-types.ts'

const CORE = new URL('../core.py', import.meta.url)

const ASK: Readonly<Record<Result['kind'], string>> = {
  json: 'ask_json',
  nothing: 'ask_nothing',
  response: 'ask',
  events: 'ask_events',
}

export interface PythonApi extends Api {
  readonly document: Document
}

export function toPythonFile(version: string, apis: readonly PythonApi[]): string {
  const rooms = apis.map(toRoom)
  const others = apis.filter(({ door }) => door !== MAIN_DOOR)
  return [
    toHead(version),
    readFileSync(CORE, 'utf8').trimEnd(),
    ...rooms.flat(),
    '',
    '',
    'class Client(_JobsOperations):',
    '    """A service, and in whose name it is asked: the Jobs API, and the other APIs as members.',
    '',
    '    base_url is that of the service (default: the variable ATELIER_BASE_URL, or http://127.0.0.1:8189), token an API key, or the',
    "    operator's for the admin API (default: ATELIER_TOKEN). A request is sent at most `attempts` times; `timeout` seconds without a",
    '    byte end it.',
    '    """',
    '',
    '    def __init__(self, base_url: Optional[str] = None, token: Optional[str] = None, *, attempts: int = 4, timeout: float = 300.0) -> None:',
    '        super().__init__(_Asker(base_url, token, attempts, timeout))',
    ...others.map(({ door }) => `        self.${door} = ${toClass(door)}(self._asker)`),
    '',
  ].join('\n')
}

const toClass = (door: string) => `_${door[0].toUpperCase()}${door.slice(1)}Operations`

function toHead(version: string): string {
  return `# A client of an Atelier service, in one file without dependencies: Python 3.9 or newer.
# Made from the specification of Atelier ${version} by scripts/build-client.ts.
import base64
import hashlib
import hmac
import http.client
import json
import mimetypes
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Literal, Mapping, NamedTuple, Optional, Tuple, TypedDict, TypeVar, Union

_T = TypeVar("_T")

`
}

function toRoom({ about, door, prefix, document }: PythonApi): string[] {
  const types = new PythonTypes(prefix, document.components.schemas)
  const methods = readOperations(document).flatMap((operation) => toMethod(operation, types))
  return [
    '',
    '',
    `# ${about}, version ${document.info.version}`,
    '',
    ...types.toLines(),
    '',
    `class ${toClass(door)}(_Operations):`,
    `    """${about}."""`,
    ...methods,
  ]
}

function toMethod(operation: Operation, types: PythonTypes): string[] {
  const { name, method, path, summary, description, arguments: args, body, result } = operation
  const word = `${name[0].toUpperCase()}${name.slice(1)}`
  const needed = args.filter(({ isRequired }) => isRequired)
  const others = args.filter(({ isRequired }) => !isRequired)
  const given = [
    ...needed.map((each) => `${toPythonName(each.name)}: ${toArgumentType(each, types, word)}`),
    ...(body?.isRequired === true ? [`body: ${toBodyType(body, types, word)}`] : []),
    ...others.map((each) => `${toPythonName(each.name)}: Optional[${toArgumentType(each, types, word)}] = None`),
    ...(body?.isRequired === false ? [`body: Optional[${toBodyType(body, types, word)}] = None`] : []),
    'on_response: Optional[OnResponse] = None',
  ]
  const text = [`${summary.replace(/\.$/, '')}.`, description]
    .filter((each) => each !== '' && each !== '.')
    .join('\n\n')
  const call = `self._asker.${ASK[result.kind]}(${toCall(operation).join(', ')})`
  return [
    '',
    `    def ${toSnakeCase(name)}(self, *, ${given.join(', ')}) -> ${toAnswer(result, types, word)}:`,
    `        """${toDocText(text === '' ? `${method} ${path}` : text)}"""`,
    ...(result.kind === 'json'
      ? [`        answer: ${toAnswer(result, types, word)} = ${call}`, '        return answer']
      : [`        ${result.kind === 'nothing' ? '' : 'return '}${call}`]),
  ]
}

function toCall({ method, path, arguments: args, body }: Operation): string[] {
  const parts = path.split(/(\{\w+\})/).filter((part) => part !== '')
  const address = parts.map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    return name === undefined ? JSON.stringify(part) : `_part("${name}", ${toPythonName(name)})`
  })
  const dict = (place: string) =>
    args.filter((each) => each.in === place).map((each) => `"${each.wire}": ${toPythonName(each.name)}`)
  const [query, headers] = [dict('query'), dict('header')]
  return [
    `"${method}"`,
    address.join(' + '),
    ...(query.length === 0 ? [] : [`query={${query.join(', ')}}`]),
    ...(headers.length === 0 ? [] : [`headers={${headers.join(', ')}}`]),
    ...(body === null ? [] : ['body=body']),
    ...(body === null || body.types[0] === JSON_TYPE ? [] : [`body_type="${body.types[0]}"`]),
    'on_response=on_response',
  ]
}

function toArgumentType({ name, schema }: Argument, types: PythonTypes, word: string): string {
  return types.toType(schema, `${word}${name[0].toUpperCase()}${name.slice(1)}`)
}

function toBodyType(
  { types: mediaTypes, schema }: NonNullable<Operation['body']>,
  types: PythonTypes,
  word: string,
): string {
  const isFile = (type: string) => type !== JSON_TYPE && type !== 'multipart/form-data'
  const described = isFile(mediaTypes[0]) ? [] : [types.toType(schema, `${word}Body`)]
  const all = [...described, ...(mediaTypes.some(isFile) ? ['Bytes'] : [])]
  return all.length === 1 ? all[0] : `Union[${all.join(', ')}]`
}

function toAnswer(result: Result, types: PythonTypes, word: string): string {
  if (result.kind === 'nothing') return 'None'
  if (result.kind === 'response') return 'http.client.HTTPResponse'
  if (result.kind === 'events') return 'Iterator[Event]'
  const type = types.toType(result.schema, `${word}Answer`)
  return result.orNull ? `Optional[${type}]` : type
}

function toDocText(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"""', '\\"\\"\\"').replaceAll('\n', '\n        ')
  return escaped.endsWith('"') ? `${escaped} ` : escaped
}
