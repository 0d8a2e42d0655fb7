/** An OpenAPI document as it was served, taken apart into operations whose references are resolved. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'

export type Schema = Readonly<Record<string, unknown>>

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly style?: string
  readonly schema: Schema
}

export interface DeclaredAnswer {
  readonly headers: Readonly<Record<string, { readonly required?: boolean; readonly schema?: Schema }>>
  /** By media type; empty: no body. */
  readonly content: Readonly<Record<string, Schema>>
}

export interface Operation {
  readonly id: string
  readonly method: string
  readonly template: string
  readonly parameters: readonly Parameter[]
  readonly body: { readonly isRequired: boolean; readonly mediaType: string; readonly schema: Schema } | null
  readonly answers: Readonly<Record<string, DeclaredAnswer>>
  /** Whether a request without any credential is promised an answer other than 401. */
  readonly isOpen: boolean
}

export interface ServedDocument {
  readonly operations: readonly Operation[]
  /** The methods that the document declares, by template. */
  readonly methods: ReadonlyMap<string, readonly string[]>
  resolve(schema: Schema): Schema
  /** What is wrong with a value by this schema; null when nothing is. */
  faultOf(schema: Schema, value: unknown): string | null
  /** A schema of the document's components. */
  named(name: string): Schema
  /** The schemas of what an operation sends on after its answer, by the name of the event or message. */
  streamed(operationId: string): Readonly<Record<string, Schema>>
}

type Node = Readonly<Record<string, unknown>>
const VERBS = new Set(['get', 'head', 'post', 'put', 'patch', 'delete', 'options', 'trace'])

export function readServedDocument(root: Node): ServedDocument {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  // Schemas that are not part of the document object by reference still name it: `#/…` becomes `served#/…`.
  ajv.addSchema(absolute(root) as object, 'served')
  const checks = new Map<Schema, ValidateFunction>()
  const resolve = (schema: Schema) => deref(root, schema)
  const paths = root['paths'] as Readonly<Record<string, Node>>
  const operations = Object.entries(paths).flatMap(([template, item]) =>
    Object.entries(item)
      .filter(([verb]) => VERBS.has(verb))
      .map(([verb, node]) => toOperation(root, { template, method: verb.toUpperCase(), node: node as Node })),
  )
  return {
    operations,
    methods: new Map(
      Object.entries(paths).map(([template, item]) => [
        template,
        Object.keys(item)
          .filter((verb) => VERBS.has(verb))
          .map((verb) => verb.toUpperCase()),
      ]),
    ),
    resolve,
    faultOf(schema, value) {
      let check = checks.get(schema)
      if (check === undefined) {
        check = ajv.compile(absolute(schema) as object)
        checks.set(schema, check)
      }
      return check(value) ? null : ajv.errorsText(check.errors)
    },
    streamed(operationId) {
      const nodes = Object.values(paths).flatMap((item) => Object.values(item) as Node[])
      const node = nodes.find((one) => one['operationId'] === operationId) as Node
      const { content } = ((node['responses'] as Node)['200'] ?? {}) as { content?: Readonly<Record<string, Node>> }
      return (node['x-messages'] ?? content?.['text/event-stream']?.['x-events']) as Record<string, Schema>
    },
    named: (name) => deref(root, { $ref: `#/components/schemas/${name}` }),
  }
}

function toOperation(root: Node, { template, method, node }: { template: string; method: string; node: Node }) {
  const requestBody = node['requestBody'] === undefined ? null : deref(root, node['requestBody'] as Node)
  const content = requestBody === null ? [] : Object.entries(requestBody['content'] as Record<string, Node>)
  const security = (node['security'] ?? root['security'] ?? []) as readonly object[]
  return {
    id: String(node['operationId']),
    method,
    template,
    parameters: ((node['parameters'] ?? []) as readonly Node[]).map((one) => toParameter(deref(root, one))),
    body:
      content.length === 0
        ? null
        : {
            isRequired: requestBody?.['required'] === true,
            mediaType: content[0][0],
            schema: (content[0][1]['schema'] ?? {}) as Schema,
          },
    answers: Object.fromEntries(
      Object.entries(node['responses'] as Record<string, Node>).map(([status, one]) => [
        status,
        toAnswer(root, deref(root, one)),
      ]),
    ),
    isOpen: security.length === 0 || security.some((way) => Object.keys(way).length === 0),
  } satisfies Operation
}

function toParameter(node: Node): Parameter {
  return {
    name: String(node['name']),
    in: node['in'] as Parameter['in'],
    required: node['required'] === true,
    style: node['style'] as string | undefined,
    schema: (node['schema'] ?? {}) as Schema,
  }
}

function toAnswer(root: Node, node: Node): DeclaredAnswer {
  const headers = (node['headers'] ?? {}) as Record<string, Node>
  const content = (node['content'] ?? {}) as Record<string, Node>
  return {
    headers: Object.fromEntries(Object.entries(headers).map(([name, one]) => [name.toLowerCase(), deref(root, one)])),
    content: Object.fromEntries(Object.entries(content).map(([type, one]) => [type, (one['schema'] ?? {}) as Schema])),
  }
}

function deref(root: Node, node: Node): Node {
  const reference = node['$ref']
  if (typeof reference !== 'string') return node
  let found: unknown = root
  for (const step of reference.slice(2).split('/')) found = (found as Node)[step]
  const { $ref: _, ...beside } = node
  return { ...deref(root, found as Node), ...beside }
}

function absolute(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(absolute)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === '$ref' && typeof member === 'string' && member.startsWith('#')
        ? [name, `served${member}`]
        : [name, absolute(member)],
    ),
  )
}
