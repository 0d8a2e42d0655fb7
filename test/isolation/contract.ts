/** The operations of a contract, as the matrix walks over them. */
import { readFileSync } from 'node:fs'

export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Also served without `/api` in front. */
  readonly isAlsoBare: boolean
}

interface OpenapiOperation {
  readonly operationId?: string
  readonly 'x-also-bare'?: boolean
}

/** `spec`: such as `spec/jobs-v2.openapi.json`. */
export function readOperations(spec: string): Operation[] {
  const { paths } = JSON.parse(readFileSync(new URL(`../../${spec}`, import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, OpenapiOperation>>
  }
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, { operationId: id, 'x-also-bare': isAlsoBare = false }]) =>
      id === undefined ? [] : [{ id, method: verb.toUpperCase(), path, isAlsoBare }],
    ),
  )
}

/** Whatever can be read can be asked about without its body, except a stream. */
export function verbsOf({ method, path }: Operation): string[] {
  return method === 'GET' && !path.endsWith('/events') ? ['GET', 'HEAD'] : [method]
}
