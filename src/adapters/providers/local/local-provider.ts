import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Engine } from '../../../domain/engine/engine-port.ts'
import type { JsonRecord } from '../../../domain/models/catalog/model.ts'
import type { Provider, ProviderRefusal, SubmitOutcome } from '../../../domain/models/provider.ts'
import { createRunWorkflow, type MadeFile, type WorkflowEnd } from '../../../domain/models/workflows/run-workflow.ts'
import { checkLocalModel, fillIn, type LocalRules, readLocalRules } from './local-rules.ts'

const DIRECT = new Error('a local model answers at once and is never polled')

/** `engine` null: there is no built-in engine, so these models cannot be run. */
export function createLocalProvider(engine: Pick<Engine, 'catalog' | 'run'> | null): Provider {
  const runWorkflow = engine === null ? null : createRunWorkflow(engine)
  return {
    name: 'local',
    access: () => (runWorkflow === null ? 'none' : 'service_key'),
    absence: 'it is a workflow, and this process has no built-in engine to run it on',
    checkModel: (model) => checkLocalModel(model, engine?.catalog() ?? null),
    // A run has no effect outside, so running it again gives the same result.
    deduplicates: () => true,
    async submit({ model, accountId, submitKey, input }, { signal }) {
      if (runWorkflow === null) throw new Error('a local model was run without an engine')
      const rules = readLocalRules(model)
      const files = readFiles(rules, input)
      if (!(files instanceof Map)) return { outcome: 'refused', refusal: files }
      const workflow = fillIn(rules, input) as JsonValue
      const end = await runWorkflow({ accountId, id: `local-${submitKey}`, workflow, files }, { signal })
      return toOutcome(end, rules)
    },
    poll: () => Promise.reject(DIRECT),
  }
}

/** The pictures of the input by the name under which the workflow loads them. */
function readFiles({ files }: LocalRules, input: JsonRecord): Map<string, Buffer> | ProviderRefusal {
  const found = new Map<string, Buffer>()
  for (const [field, name] of Object.entries(files)) {
    const value = input[field]
    if (value === undefined || value === null) continue
    const bytes = readDataUri(value)
    if (bytes === null) return badFile(field)
    found.set(name, bytes)
  }
  return found
}

function badFile(field: string): ProviderRefusal {
  const msg = 'must be a data URI with base64, such as data:image/png;base64,…'
  return {
    reason: 'invalid',
    message: `${field} ${msg}`,
    failures: [{ loc: ['body', field], msg, type: 'image_load_error' }],
    upstreamStatus: null,
    generation: 'none',
  }
}

function toOutcome(end: WorkflowEnd, rules: LocalRules): SubmitOutcome {
  if (end.outcome === 'failed') return refused('failed', end.message, 'ended')
  if (end.outcome === 'interrupted') return refused('timeout', 'the workflow was interrupted', 'none')
  const [first] = end.files
  if (rules.output === 'file') {
    return first === undefined
      ? refused('failed', 'the workflow made no file', 'ended')
      : finished(first.bytes, first.contentType)
  }
  const document = { files: end.files.map(toFileView), texts: end.texts }
  return finished(Buffer.from(JSON.stringify(document)), 'application/json')
}

function toFileView({ name, contentType, bytes }: MadeFile): object {
  return { name, content_type: contentType, data: bytes.toString('base64') }
}

function finished(body: Buffer, contentType: string): SubmitOutcome {
  return { outcome: 'finished', result: { body, contentType, usage: null, costMicros: null } }
}

function refused(reason: 'failed' | 'timeout', message: string, generation: 'none' | 'ended'): SubmitOutcome {
  return { outcome: 'refused', refusal: { reason, message, upstreamStatus: null, generation } }
}

const DATA_URI = /^data:[a-z]+\/[a-z0-9.+-]+(?:;[a-z0-9=-]+)*;base64,/i
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** The bytes of a base64 data URI, or of plain base64; null when it is neither. */
function readDataUri(value: unknown): Buffer | null {
  if (typeof value !== 'string') return null
  const head = DATA_URI.exec(value)?.[0] ?? ''
  const text = value.slice(head.length)
  return BASE64.test(text) ? Buffer.from(text, 'base64') : null
}
