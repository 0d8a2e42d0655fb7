/**
 * Asks a service what the scenarios ask and writes the answers into `spec/examples`: `node test/examples/record.ts [name of a scenario]`. An example
 * that is still like the answer stays as it is.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OperationExample } from '../../lib/openapi/examples.ts'
import { type Document, type Operation, readOperations } from '../../lib/openapi/operations.ts'
import { findDifference, ShownNames } from './normal-form.ts'
import { fill, keep, type Scenario, type Step, type World } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

async function send(world: World, operation: Operation, step: Step): Promise<Response> {
  const given = fill(step.parameters ?? {}, world.values) as Record<string, unknown>
  const body = fill(step.body, world.values)
  const place = (name: string) => operation.arguments.find(({ wire }) => wire === name)?.in
  const url = new URL(
    world.url + operation.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(given[name]))),
  )
  const headers = new Headers()
  if (world.token !== null) headers.set('Authorization', `Bearer ${world.token}`)
  for (const [name, value] of Object.entries(given)) {
    if (place(name) === 'header') headers.set(name, String(value))
    if (place(name) !== 'query') continue
    if (typeof value === 'object' && !Array.isArray(value))
      for (const [key, each] of Object.entries(value as object)) url.searchParams.set(`${name}[${key}]`, String(each))
    else url.searchParams.set(name, String(value))
  }
  return fetch(url, { method: operation.method, headers, body: toBody(operation, body, headers) })
}

function toBody({ body: described }: Operation, body: unknown, headers: Headers): FormData | string | null {
  if (body === undefined || described === null) return null
  const [type = ''] = described.types
  if (type === 'multipart/form-data') {
    const form = new FormData()
    for (const [name, value] of Object.entries(body as object))
      for (const each of Array.isArray(value) ? value : [value])
        form.append(name, described.files.includes(name) ? new Blob([String(each)]) : String(each))
    return form
  }
  headers.set('Content-Type', type)
  return typeof body === 'string' ? body : JSON.stringify(body)
}

async function record(scenario: Scenario): Promise<void> {
  const file = path.join(project, 'spec/examples', scenario.source.replace('.openapi', ''))
  const examples: Record<string, OperationExample> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  const document = JSON.parse(readFileSync(path.join(project, 'spec', scenario.source), 'utf8')) as Document
  const operations = new Map(readOperations(document).map((operation) => [operation.name, operation]))
  const names = new ShownNames()
  await using world = await scenario.start()
  for (const step of scenario.steps) {
    const operation = operations.get(step.operation)
    if (operation === undefined) throw new Error(`${scenario.source} has no operation ${step.operation}`)
    await step.before?.(world)
    const response = await send(world, operation, step)
    const isEvents = operation.result.kind === 'events'
    const text = isEvents ? '' : await response.text()
    if (isEvents) await response.body?.cancel()
    if (!response.ok) throw new Error(`${step.operation}: ${response.status} ${text}`)
    const isJson = operation.result.kind === 'json' && text !== ''
    const answer: unknown = isJson ? JSON.parse(text) : null
    const shown = (value: unknown) => names.show(fill(value, world.values))
    const example: OperationExample = {
      ...(step.parameters !== undefined && { parameters: shown(step.parameters) as Record<string, unknown> }),
      ...(step.body !== undefined && { body: shown(step.body) }),
      ...(isJson && step.isUntold !== true && { answer: { status: response.status, body: names.showAnswer(answer) } }),
    }
    keep(step, answer, world.values)
    const before = examples[step.operation]
    if (before === undefined || findDifference(before, example) !== null) examples[step.operation] = example
    console.log(step.operation)
  }
  mkdirSync(path.dirname(file), { recursive: true })
  const sorted = Object.fromEntries(
    [...operations.keys()].flatMap((name) => (name in examples ? [[name, examples[name]]] : [])),
  )
  writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`)
}

const [wanted] = process.argv.slice(2)
for (const scenario of SCENARIOS) if (wanted === undefined || scenario.name === wanted) await record(scenario)
