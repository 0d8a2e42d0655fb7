/**
 * The question before outputs are handed out. Outputs of a run that it covers are held back until the run has ended and the operator's
 * hook has seen all of them; until then they have no record, so that nothing that reads jobs or assets can show them. What is not
 * allowed never gets one.
 */
import { inOneChunk } from '../../../../lib/files/byte-streams.ts'
import { isMediaType, toBareType } from '../../../../lib/files/mime.ts'
import type { NewId } from '../../../../lib/ids.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import type { StoreBlob } from '../../assets/blob-store.ts'
import { outlastOutage, ServiceError } from '../../errors.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import { type AskHook, HookFault } from '../../moderation/ask-hook.ts'
import type { CheckLinks } from '../../moderation/check-links.ts'
import type { Job, JobError, Output } from '../job.ts'
import type { EndChange } from '../run/committer.ts'
import { withLine } from '../run/record/log-lines.ts'
import type { RunRecord, ShownItem } from '../run/record/run-record.ts'
import { isOfOther, ownLabels, readRunLabels } from '../submit/job-labels.ts'
import { type RunEndStatus, statesBeforeEnd } from '../transitions.ts'

/** Of an answer that brings other bytes, in base64. */
export const MAX_CHANGE_BYTES = 50 * 1024 * 1024

export type OutputVerdict =
  | {
      readonly verdict: 'hand_out'
      readonly outputs: readonly Output[]
      /** What these nodes showed is not what is handed out. */
      readonly changedNodes: ReadonlySet<string>
      /** null: there is nothing to say. */
      readonly note: string | null
    }
  /** The job fails. */
  | { readonly verdict: 'refuse'; readonly error: JobError }
  /** The job ends as it would, without outputs: it failed or was canceled anyway. */
  | { readonly verdict: 'withhold' }
  /** It was canceled while the hook was asked. */
  | { readonly verdict: 'cancel' }

export interface JudgeRequest {
  readonly job: Pick<Job, 'id' | 'accountId' | 'attempt' | 'metadata'>
  readonly outputs: readonly Output[]
  /** Stores what the hook gives in place of an output. */
  readonly store: StoreBlob
  readonly signal: AbortSignal
}

export interface OutputCheck {
  /** Whether outputs of a job with these labels are held back. */
  covers(metadata: Job['metadata']): boolean
  /** Tells results that this hook has allowed from others; null: they are not covered. */
  keyOf(metadata: Job['metadata']): string | null
  /** Throws the reason of the signal once that is aborted. */
  judge(request: JudgeRequest): Promise<Extract<OutputVerdict, { verdict: 'hand_out' | 'refuse' }>>
}

interface OutputCheckDeps {
  readonly ask: AskHook
  readonly links: Pick<CheckLinks, 'sign'>
  readonly linkMs: number
  readonly baseUrl: () => Promise<string>
  /** Whether outputs of graphs that were submitted as such are covered. */
  readonly coversJobs: boolean
  /** What the key of a result says of the hook. */
  readonly identity: string
  readonly newId: NewId
}

export function createOutputCheck(deps: OutputCheckDeps): OutputCheck {
  const { ask, links, linkMs, coversJobs, newId } = deps
  const covers = (metadata: Job['metadata']) => coversJobs || readRunLabels(metadata) !== null

  async function toData({ job, outputs }: JudgeRequest): Promise<string> {
    const base = await deps.baseUrl()
    const { id, accountId, attempt, metadata } = job
    const called = readRunLabels(metadata)
    return stringifyLosslessJson({
      ...{ account: accountId, job_id: id, attempt, metadata: { ...ownLabels(metadata) } },
      endpoint: called === null ? null : { name: called.name, version: called.version },
      outputs: outputs.map((output, index) => ({
        ...{ index, name: output.name, node_id: output.nodeId, type: output.type, content_type: output.contentType },
        ...{ hash: `blake3:${output.hash}`, size_bytes: output.sizeBytes },
        listed: output.location?.isUnlisted !== true,
        url: `${base}${links.sign(output, linkMs)}`,
      })),
    })
  }

  async function change(wishes: readonly Wish[], { outputs, store, signal }: JudgeRequest) {
    const wishOf = new Map(wishes.map((wish) => [wish.index, wish]))
    const kept: Output[] = []
    for (const [index, output] of outputs.entries()) {
      const wish = wishOf.get(index)
      if (wish === undefined) kept.push(output)
      else if (wish.given !== null) {
        const { bytes, contentType } = wish.given
        const { hash, sizeBytes } = await outlastOutage(
          () => store(inOneChunk(bytes), { maxBytes: MAX_CHANGE_BYTES, signal }),
          signal,
        )
        kept.push({ ...output, assetId: newId(), hash, sizeBytes, contentType, type: typeOf(contentType) })
      }
    }
    const changedNodes = new Set(wishes.map(({ index }) => outputs[index]!.nodeId))
    return { verdict: 'hand_out', outputs: kept, changedNodes, note: CHANGED } as const
  }

  return {
    covers,
    keyOf: (metadata) => (covers(metadata) ? deps.identity : null),
    async judge(request) {
      const { job, outputs, signal } = request
      const none = { verdict: 'hand_out', outputs, changedNodes: new Set<string>() } as const
      if (outputs.length === 0) return { ...none, note: 'the run made no outputs, so no hook was asked' }
      const answer = await ask({
        id: `outputs_${job.id}_${job.attempt}`,
        data: await toData(request),
        readChange: async (given) => readWishes(given['outputs'], outputs.length),
        signal,
      })
      switch (answer.answer) {
        case 'allow':
          return { ...none, note: answer.isChecked ? ALLOWED : UNCHECKED }
        case 'refuse':
          return { verdict: 'refuse', error: toError('refused_by_policy', answer.message) }
        case 'failed':
          return { verdict: 'refuse', error: toError('check_unavailable', FAILED) }
        case 'change':
          return change(answer.change, request).catch(toFailedChange)
      }
    },
  }
}

const ALLOWED = "outputs were checked by the operator's hook"
const CHANGED = "outputs were checked and changed by the operator's hook"
const UNCHECKED = "outputs were handed out unchecked: the operator's hook failed, and its rule allows that"
const REFUSED = 'outputs, and what the run printed, were removed: they were not let through'
const FAILED =
  'the check of the outputs that the operator of this service demands could not be made; submit the job again'

/** What is to be replaced must not be handed out because its replacement cannot be kept. */
function toFailedChange(error: unknown): Extract<OutputVerdict, { verdict: 'refuse' }> {
  if (!(error instanceof ServiceError)) throw error
  return { verdict: 'refuse', error: toError(error.refusal, `a changed output could not be kept: ${error.message}`) }
}

function toError(code: string, message: string): JobError {
  return { code, message, nodeId: null, classType: null, traceback: null }
}

interface Wish {
  readonly index: number
  /** null: the output is left out. */
  readonly given: { readonly bytes: Uint8Array; readonly contentType: string } | null
}

/** Throws HookFault. */
function readWishes(given: JsonValue | undefined, count: number): readonly Wish[] {
  if (!Array.isArray(given)) throw new HookFault('its change has no list outputs')
  const wishes = given.map((each) => readWish(each, count))
  if (new Set(wishes.map(({ index }) => index)).size !== wishes.length)
    throw new HookFault('its change names an output twice')
  return wishes
}

function readWish(each: JsonValue, count: number): Wish {
  const { index, data, content_type: contentType, drop }: JsonObject = isJsonObject(each) ? each : {}
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count)
    throw new HookFault('its change names no output that there is')
  if (drop === true && data === undefined) return { index, given: null }
  const isNamed = typeof contentType === 'string' && isMediaType(contentType)
  const bytes = typeof data === 'string' ? readBase64(data) : null
  if (!isNamed || bytes === null || drop !== undefined)
    throw new HookFault(`its change of output ${index} has neither drop nor data in base64 with a content_type`)
  return { index, given: { bytes, contentType } }
}

/** null: it is something else, of which a decoder would skip what it does not know. */
function readBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64')
  const digits = text.length - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0)
  return bytes.length === Math.floor((digits * 3) / 4) && digits % 4 !== 1 ? bytes : null
}

function typeOf(contentType: string): Output['type'] {
  const [family] = toBareType(contentType).split('/', 1)
  return family === 'image' || family === 'video' || family === 'audio' || family === 'text' ? family : 'file'
}

/** The last write of a covered run, as its verdict has it. Applied twice it makes the same. */
export function toCheckedEnd(made: EndChange, verdict: OutputVerdict, metadata: Job['metadata']): EndChange {
  const change = isOfOther(metadata) ? withoutLog(made) : made
  const { finish } = change
  switch (verdict.verdict) {
    case 'hand_out': {
      const record = withChanges(finish.record, verdict)
      return {
        ...change,
        outputs: verdict.outputs,
        ...(verdict.note !== null && { log: withLine(change.log, verdict.note, finish.at) }),
        finish: { ...finish, record },
      }
    }
    case 'refuse':
      // What nodes printed may be what was refused.
      return endWithout({ ...change, log: withLine(undefined, REFUSED, finish.at) }, 'failed', verdict.error)
    case 'withhold':
      return endWithout(change, finish.status, finish.error)
    case 'cancel':
      return endWithout(change, 'canceled', null)
  }
}

/** What nodes print may tell what they are. */
function withoutLog({ log: _, ...change }: EndChange): EndChange {
  return change
}

function endWithout(change: EndChange, status: RunEndStatus, error: JobError | null): EndChange {
  const { outputs: _, finish, ...rest } = change
  return {
    ...rest,
    finish: {
      ...finish,
      ...{ status, error, from: statesBeforeEnd(status), resultKey: null },
      record: withoutContent(finish.record),
    },
  }
}

/** Of nodes whose outputs were changed only the names of files are kept that are still there. */
function withChanges(
  record: RunRecord | null | undefined,
  { changedNodes, outputs }: Pick<Extract<OutputVerdict, { verdict: 'hand_out' }>, 'changedNodes' | 'outputs'>,
): RunRecord | null {
  if (record == null) return null
  return { ...record, nodes: keepFileNames(record.nodes, outputs, changedNodes) }
}

/** Of what these nodes showed only the names of files that are among the outputs; of all nodes where none is named. */
export function keepFileNames(
  nodes: RunRecord['nodes'],
  outputs: readonly Output[],
  only: ReadonlySet<string> | null = null,
): RunRecord['nodes'] {
  const files = new Set(outputs.map(({ nodeId, name }) => `${nodeId}\n${name}`))
  return nodes.flatMap((node) => {
    if (only?.has(node.displayNodeId) === false) return [node]
    const isKept = (item: ShownItem) => isFileName(item) && files.has(`${node.displayNodeId}\n${item.filename}`)
    const kept = Object.entries(node.output).map(([key, items]) => [key, items.filter(isKept)] as const)
    const left = kept.filter(([, items]) => items.length > 0)
    return left.length === 0 ? [] : [{ ...node, output: Object.fromEntries(left) }]
  })
}

function isFileName(item: ShownItem): item is { filename: string; subfolder: string; type: 'output' } {
  if (typeof item !== 'object' || item === null) return false
  return Object.keys(item).sort().join() === 'filename,subfolder,type'
}

/** Texts that nodes made are among what they showed, and among the inputs of those that came after them. */
function withoutContent(record: RunRecord | null | undefined): RunRecord | null {
  if (record == null) return null
  const { failure } = record
  return { ...record, nodes: [], failure: failure && { ...failure, currentInputs: {}, currentOutputs: [] } }
}

/** Live events of a covered run tell how far it is, and nothing of what it makes. null: nobody hears this one. */
export function toWithheld(event: LiveEvent): LiveEvent | null {
  switch (event.type) {
    case 'preview':
    case 'node_text':
    case 'node_report':
    case 'node_blocked':
    case 'log':
      return null
    case 'failed': {
      const { currentInputs: _, currentOutputs: __, ...failure } = event.failure
      return { type: 'failed', failure }
    }
    case 'started':
    case 'cached':
    case 'node_started':
    case 'node_progress':
    case 'node_finished':
    case 'succeeded':
    case 'interrupted':
      return event
  }
}
