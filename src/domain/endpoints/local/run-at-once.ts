/**
 * Runs a workflow on the engine of this process within a call, without a job: nothing waits in a queue, nothing is kept, nothing is charged.
 * So a node of a job may call such a model, too: a job of its own could wait for the very place that the caller has.
 */
import { hash } from 'node:crypto'
import type { NodeReport } from '../../../../engine/graph/run-event.ts'
import { inOneChunk } from '../../../../lib/files/byte-streams.ts'
import { typeFromName } from '../../../../lib/files/mime.ts'
import { type JsonObject, type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { GivenFileError, isDataUrl, readDataUrl } from '../../assets/given-files.ts'
import type { Engine, EngineInput, EngineRun } from '../../engine/engine-port.ts'
import { ServiceError } from '../../errors.ts'
import type { Model } from '../../models/catalog/model.ts'
import type { ProviderCall, ProviderRefusal, SubmitOutcome } from '../../models/provider.ts'
import { asRefusal } from '../../workflows/graph-refusals.ts'
import { fillGraph } from '../fill-graph.ts'
import { judgeGraph, type LocalRules, readLocalRules } from './local-rules.ts'
import { type AnswerFile, refused, toDocument, toFile } from './model-answer.ts'

type RunAtOnce = (call: ProviderCall, options: { readonly signal: AbortSignal }) => Promise<SubmitOutcome>

const FALLBACK_TYPE = 'application/octet-stream'

export function createRunAtOnce(engine: Pick<Engine, 'catalog' | 'run'>): RunAtOnce {
  const read = createRuleReader()
  return async function runAtOnce({ model, accountId, submitKey, input }, { signal }) {
    const rules = read(model)
    const files = readFiles(rules, input as JsonObject)
    if (!(files instanceof Map)) return { outcome: 'refused', refusal: files }
    const graph = fillGraph(rules.graph, rules.fields, input as JsonObject)
    const made: Made = { files: [], texts: [] }
    const run = toRun(engine, { graph, files, accountId, id: `local-${submitKey}` })
    for await (const event of engine.run(run, { signal })) {
      if (event.type === 'node_report') await collect(event.report, made)
      if (event.type === 'failed') return refused('failed', event.failure.message, 'ended')
      if (event.type === 'interrupted') return refused('timeout', 'the workflow was interrupted', 'none')
    }
    return rules.output === 'file' ? toFile(made.files) : toDocument(made.files, { texts: made.texts })
  }
}

/** A reload makes new models; one stays what it is. */
function createRuleReader(): (model: Model) => LocalRules {
  const known = new WeakMap<Model, LocalRules>()
  return (model) => {
    const rules = known.get(model) ?? readLocalRules(model)
    known.set(model, rules)
    return rules
  }
}

/** The files of the input by the name under which the graph loads them. */
function readFiles({ files }: LocalRules, input: JsonObject): Map<string, Buffer> | ProviderRefusal {
  const found = new Map<string, Buffer>()
  for (const [field, name] of files) {
    const { [field]: value = null } = input
    if (value === null) continue
    const bytes = readFile(value)
    if (bytes === null) return badFile(field)
    found.set(name, bytes)
  }
  return found
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** Of a data URI, or of plain base64; null when it is neither. The bound is that of the body. */
function readFile(value: JsonValue): Buffer | null {
  if (typeof value !== 'string') return null
  if (!isDataUrl(value)) return BASE64.test(value) ? Buffer.from(value, 'base64') : null
  try {
    const { bytes } = readDataUrl(value, value.length)
    return bytes.length > 0 ? bytes : null
  } catch (error) {
    if (error instanceof GivenFileError) return null
    throw error
  }
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

interface Wanted {
  readonly accountId: string
  readonly id: string
  readonly graph: JsonObject
  readonly files: ReadonlyMap<string, Buffer>
}

/** Throws ServiceError `invalid_workflow`. */
function toRun(engine: Pick<Engine, 'catalog'>, { accountId, id, graph, files }: Wanted): EngineRun {
  const result = mustBeGraph(() => judgeGraph(graph, engine.catalog(), (name) => files.has(name)))
  if (result.goodOutputs.length === 0 || Object.keys(result.nodeErrors).length > 0) {
    throw new ServiceError('invalid_workflow', 'the workflow of this model does not run on this engine')
  }
  return {
    jobId: id,
    accountId,
    attempt: 1,
    claimId: id,
    graph: result.graph,
    inputs: new Map(Array.from(files, ([name, bytes]) => [name, toInput(name, bytes)])),
    extraData: null,
    // Nothing is kept, so every run may count from one.
    reserveOutputNumbers: async () => 1,
  }
}

/** A value of the caller may be nested too deep. */
function mustBeGraph<Judged>(judge: () => Judged): Judged {
  try {
    return judge()
  } catch (error) {
    throw asRefusal(error)
  }
}

function toInput(name: string, bytes: Buffer): EngineInput {
  return {
    hash: hash('sha256', bytes),
    sizeBytes: bytes.length,
    contentType: typeFromName(name) ?? FALLBACK_TYPE,
    localPath: null,
    read: () => inOneChunk(bytes),
  }
}

interface Made {
  readonly files: AnswerFile[]
  readonly texts: string[]
}

async function collect(report: NodeReport, { files, texts }: Made): Promise<void> {
  for (const item of Object.values(report).flat()) {
    if (item.kind === 'value') {
      texts.push(typeof item.value === 'string' ? item.value : stringifyLosslessJson(item.value as JsonValue))
      continue
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of item.read()) chunks.push(chunk)
    item.release?.()
    const bytes = Buffer.concat(chunks)
    const contentType = item.contentType ?? typeFromName(item.filename) ?? FALLBACK_TYPE
    files.push({ name: item.filename, contentType, sizeBytes: bytes.length, open: async () => inOneChunk(bytes) })
  }
}
