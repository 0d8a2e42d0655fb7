/**
 * What callers put into `extra_data`, taken apart. Credentials go to the run and nowhere else. A few well-known keys are kept
 * with the job. All other keys are shown for as long as this process remembers them, and never stored, because nobody knows
 * what they hold. Credentials deeper inside of what is kept or shown are blanked.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import { blankCredentialSteps } from '../../../domain/jobs/submit/extra-data-keeper.ts'

interface SplitExtraData {
  /** For the run: credentials and what is written into files; null when there is nothing. */
  readonly forRun: JsonObject | null
  /** To be kept with the job. */
  readonly kept: JsonObject
  /** To be remembered and shown. */
  readonly remembered: JsonObject
}

export const CREDENTIAL = /^(api_key|auth_token)_(.+)_org$/
/** A member with such a name may hold a secret: it is never shown. */
const SECRET_NAME = /key|token|secret|password|passwd|credential|authorization|cookie|session/i
const KEPT = ['client_id', 'create_time', 'extra_pnginfo', 'preview_method', 'comfy_usage_source']
/** The two names of one service: whichever a caller uses, a run finds it under both. */
const ORGANISATIONS = ['service', 'comfy']

export function* splitExtraDataSteps(data: JsonObject): Work<SplitExtraData> {
  const forRun = new Map<string, JsonValue>()
  const plain = new Map<string, JsonValue>()
  const remembered = new Map<string, JsonValue>()
  for (const [name, value] of Object.entries(data)) {
    const credential = CREDENTIAL.exec(name)
    if (credential !== null) for (const alias of aliasesOf(credential)) forRun.set(alias, value)
    else if (KEPT.includes(name)) plain.set(name, value)
    else if (!SECRET_NAME.test(name)) remembered.set(name, value)
  }
  const known = Object.entries(data).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []))
  // A saved graph is opened again from here, so only what is a credential beyond doubt is taken out of it.
  const kept = yield* blankCredentialSteps<JsonObject>(Object.fromEntries(plain), { known })
  const pngInfo = kept['extra_pnginfo']
  if (isJsonObject(pngInfo) && Object.keys(pngInfo).length > 0) forRun.set('extra_pnginfo', pngInfo)
  return {
    forRun: forRun.size === 0 ? null : Object.fromEntries(forRun),
    kept,
    remembered: yield* blankCredentialSteps<JsonObject>(Object.fromEntries(remembered), {
      known,
      isCredentialName: (name) => SECRET_NAME.test(name),
    }),
  }
}

function aliasesOf([name, kind, organisation]: RegExpExecArray): readonly string[] {
  return ORGANISATIONS.includes(organisation) ? ORGANISATIONS.map((one) => `${kind}_${one}_org`) : [name]
}

/** The members of `extra_data` that are shown and not stored, as JSON text by job. Bounded; the oldest are dropped first. */
export interface ExtraDataMemory {
  /** `text`: an object. */
  remember(jobId: string, text: string): void
  /** The members that are remembered of the job, followed by those of `keptText`. */
  merge(jobId: string, keptText: string): string
}

const MAX_JOBS = 5000
const MAX_TEXT_LENGTH = 65_536
const MAX_SUM_LENGTH = 16 * 1024 * 1024

export function createExtraDataMemory(): ExtraDataMemory {
  const texts = new Map<string, string>()
  let length = 0

  function drop(jobId: string): void {
    length -= texts.get(jobId)?.length ?? 0
    texts.delete(jobId)
  }

  const isFull = () => texts.size > MAX_JOBS || length > MAX_SUM_LENGTH

  function dropOldest(): void {
    for (const oldest of texts.keys()) {
      drop(oldest)
      if (!isFull()) return
    }
  }

  return {
    remember(jobId, text) {
      if (text === '{}' || text.length > MAX_TEXT_LENGTH) return
      drop(jobId)
      texts.set(jobId, text)
      length += text.length
      if (isFull()) dropOldest()
    },
    merge(jobId, keptText) {
      const text = texts.get(jobId)
      if (text === undefined) return keptText
      return keptText === '{}' ? text : `${text.slice(0, -1)},${keptText.slice(1)}`
    },
  }
}
