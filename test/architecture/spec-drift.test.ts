import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROUTER_ERROR_TYPES } from '../../src/surfaces/router-v2/router-errors.ts'
import { project, readJson } from './sources.ts'

interface Operation {
  readonly operationId?: string
}
interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const VERBS = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options']

function operationIds(spec: OpenApi): string[] {
  return Object.values(spec.paths).flatMap((item) =>
    VERBS.flatMap((verb) =>
      item[verb] === undefined ? [] : (item[verb].operationId ?? `a ${verb} without operationId`),
    ),
  )
}

/** The names of the functions that register an operation's route: files hold the operations of one resource, small surfaces theirs in `index.ts`. */
function registeredOperations(folder: string): string[] {
  return globSync(`${folder}/{index.ts,operations/**/*.ts}`, { cwd: project })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const text = readFileSync(path.join(project, file), 'utf8')
      return [...text.matchAll(/^(?:export )?function (\w+)\(\s*app: FastifyInstance\b/gm)].map(([, name]) => name)
    })
}

/** Every surface with a contract: its document and its folder. */
const CONTRACTS = [
  ['spec/jobs-v2.openapi.json', 'src/surfaces/jobs-v2'],
  ['spec/router.openapi.json', 'src/surfaces/router-v2'],
  ['spec/admin.openapi.json', 'src/surfaces/admin'],
  ['spec/worker.openapi.json', 'src/surfaces/worker-v1'],
  ['spec/console.openapi.json', 'src/surfaces/console'],
  ['spec/partner-nodes.openapi.json', 'src/surfaces/partner-nodes'],
  ['spec/images.openapi.json', 'src/surfaces/images-v1'],
  ['spec/chat.openapi.json', 'src/surfaces/chat-v1'],
  ['spec/replicate.openapi.json', 'src/surfaces/replicate-v1'],
  ['spec/share.openapi.json', 'src/surfaces/share'],
  ['spec/deploy-v1.openapi.json', 'src/surfaces/deploy-v1'],
  ['spec/builder-v1.openapi.json', 'src/surfaces/builder-v1'],
] as const

for (const [document, folder] of CONTRACTS) {
  test(`the operations of ${folder} are those of ${document}`, () => {
    const spec = readJson(document) as OpenApi
    // One route may answer two verbs, so an operation may stand twice in the specification.
    const specified = [...new Set(operationIds(spec))]
    assert.deepEqual(registeredOperations(folder).sort(), specified.sort())
  })

  test(`${document} is OpenAPI 3.1`, () => {
    assert.match((readJson(document) as OpenApi).openapi, /^3\.1\./)
  })
}
test('the error types of the router are those of its specification, and docs/errors.md explains each', () => {
  const spec = readJson('spec/router.openapi.json') as {
    components: { schemas: { RouterErrorType: { enum: string[] } } }
  }
  assert.deepEqual(spec.components.schemas.RouterErrorType.enum, [...ROUTER_ERROR_TYPES])
  const document = readFileSync(path.join(project, 'docs/errors.md'), 'utf8')
  for (const type of ROUTER_ERROR_TYPES) assert.match(document, new RegExp(`^\\| \`${type}\` +\\|`, 'm'), type)
})

test('docs/errors.md explains every code that the service answers', () => {
  const table = readFileSync(path.join(project, 'src/surfaces/jobs-v2/jobs-errors.ts'), 'utf8')
  const codes = new Set([...table.matchAll(/\[\s*(\d{3}),\s*'([a-z_]+)'/g)].map((match) => match[2]))
  assert.ok(codes.size >= 15, 'the table of codes was found')
  const document = readFileSync(path.join(project, 'docs/errors.md'), 'utf8')
  const explained = new Set([...document.matchAll(/^\| `([a-z_]+)` +\|/gm)].map((match) => match[1]))
  assert.deepEqual(
    [...codes].filter((code) => !explained.has(code)),
    [],
  )
})
