/** The specification names exactly the routes that exist, each with an id of its own; answers have the shapes it promises. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { startTestApp } from '../../../../test/support/app/start-app.ts'
import { LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { saveGraph } from '../../../../test/support/clients/legacy-graphs.ts'
import { registerRoutes } from '../index.ts'
import { createApi, type OperationDeps } from '../legacy-operation.ts'

interface Operation {
  readonly operationId: string
  readonly 'x-also-bare'?: boolean
}

const spec = JSON.parse(readFileSync(new URL('../../../../spec/legacy-v1.openapi.json', import.meta.url), 'utf8')) as {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

function specified(): string[] {
  return Object.entries(spec.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]) => {
      const url = path.replaceAll(/\{(\w+)\}/g, ':$1')
      const both = operation['x-also-bare'] === true ? [url, url.slice('/api'.length)] : [url]
      return both.map((one) => `${verb.toUpperCase()} ${one}`)
    }),
  )
}

test('the registered routes are the specified ones', () => {
  const api = createApi({ route: () => undefined } as never)
  registerRoutes(api, { gate: { hasCredentials: true }, library: {}, console: {} } as OperationDeps)
  assert.deepEqual(api.routes.toSorted(), specified().sort())
})

test('it is OpenAPI 3.1, and every operation has a name of its own', () => {
  assert.match(spec.openapi, /^3\.1\./)
  const ids = Object.values(spec.paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
  assert.equal(new Set(ids).size, ids.length)
})

test('answers have the specified shapes', async () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(spec, 'spec')
  await using app = await startTestApp()
  const client = new LegacyClient(app.url)
  const id = await client.accepted(saveGraph(1))
  await client.untilHistory(id)
  const answers: [schema: string, path: string][] = [
    ['ExecInfo', '/prompt'],
    ['Queue', '/queue'],
    ['History', '/history'],
    ['JobList', '/api/jobs'],
    ['JobDetail', `/api/jobs/${id}`],
    ['JobStatus', `/api/job/${id}/status`],
    ['ObjectInfo', '/object_info'],
    ['AssetList', '/api/assets'],
    ['TagCounts', '/api/tags'],
  ]
  for (const [schema, path] of answers) {
    const validate = ajv.compile({ $ref: `spec#/components/schemas/${schema}` })
    assert.ok(validate((await client.get(path)).json), `${path}: ${JSON.stringify(validate.errors)}`)
  }
  const refused = await client.prompt({ '1': { class_type: 'Nothing', inputs: {} } })
  const validate = ajv.compile({ $ref: 'spec#/components/schemas/PromptRefused' })
  assert.ok(validate(refused.json), JSON.stringify(validate.errors))
  const { json: served } = await client.get('/api/openapi.json')
  assert.deepEqual(served, { ...spec, security: [], servers: [{ url: app.url }] }, 'open here, and at this address')
})

test('the contract has a reference page', async () => {
  await using app = await startTestApp()
  const page = await (await fetch(`${app.url}/docs/legacy-v1`)).text()
  for (const path of Object.keys(spec.paths)) assert.ok(page.includes(`<code>${path}</code>`), path)
})
