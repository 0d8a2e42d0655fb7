/**
 * Examples of an API, kept beside its document because they are as long as it is, and read when somebody wants to see them: what each
 * operation is asked, and what it answers to that. `withExamples` puts them where OpenAPI has them.
 */
import { readFileSync } from 'node:fs'
import { type Document, JSON_TYPE } from './operations.ts'

export interface OperationExample {
  /** By the names that parameters have in the document. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  /** Left out: a file, or what is told by its status alone. */
  readonly answer?: { readonly status: number; readonly body: unknown }
}

/** By the ids of operations. */
export type Examples = Readonly<Record<string, OperationExample>>

/** Of the document in this file: they are in the folder `examples` beside it. */
export function readExamples(source: URL): Examples {
  const file = new URL(`examples/${source.pathname.split('/').at(-1)?.replace('.openapi', '')}`, source)
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Examples
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

type Node = Readonly<Record<string, unknown>>

export function withExamples<T extends object>(document: T, examples: Examples): T {
  const { paths } = document as unknown as Document
  const shown = Object.entries(paths).map(([path, item]) => [
    path,
    Object.fromEntries(
      Object.entries(item).map(([method, operation]) => {
        const example = examples[operation.operationId]
        return [method, example === undefined ? operation : toShown(document, operation as unknown as Node, example)]
      }),
    ),
  ])
  return { ...document, paths: Object.fromEntries(shown) }
}

function toShown(document: object, operation: Node, { parameters = {}, body, answer }: OperationExample): Node {
  const { components } = document as Document
  const told = ((operation['parameters'] ?? []) as readonly Node[]).map((each) => {
    const reference = each['$ref']
    const found = typeof reference === 'string' ? components['parameters']?.[reference.split('/').at(-1) ?? ''] : each
    const parameter = found as Node
    const example = parameters[String(parameter['name'])]
    return example === undefined ? each : { ...parameter, example }
  })
  const responses = operation['responses'] as Readonly<Record<string, Node>>
  return {
    ...operation,
    ...(told.length > 0 && { parameters: told }),
    ...(body !== undefined && { requestBody: withExample(operation['requestBody'] as Node, body) }),
    ...(answer !== undefined && {
      responses: {
        ...responses,
        [answer.status]: withExample(responses[answer.status] ?? {}, answer.body),
      },
    }),
  }
}

/** Beside the schema of JSON where there is JSON, and of the only other type where there is none. */
function withExample(holder: Node, example: unknown): Node {
  const content = (holder['content'] ?? {}) as Readonly<Record<string, Node>>
  const type = JSON_TYPE in content ? JSON_TYPE : Object.keys(content)[0]
  return type === undefined ? holder : { ...holder, content: { ...content, [type]: { ...content[type], example } } }
}
