/**
 * A workflow as an endpoint: an address with named, typed inputs. An endpoint is a name that moves; what runs is one of its
 * versions, which never changes. A caller can set the inputs of a version and nothing else.
 */
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Micros } from '../../../lib/text/usd.ts'
import type { FileFault } from '../assets/given-files.ts'
import { type PoolPrice, priceOfTime } from '../credits/prices.ts'
import { NO_LIMITS, type RunLimits } from '../jobs/limits/run-limits.ts'

/** What kind of file an input takes, or an output makes; `file` is any. */
export type FileKind = 'image' | 'mask' | 'video' | 'audio' | 'model3d' | 'file'

/** One value of the graph. */
export interface Place {
  readonly nodeId: string
  /** As in the graph, dots included. */
  readonly input: string
}

/** White where to edit, on black; or transparent where to edit, in the colours that were sent. */
export type MaskConvention = 'white_is_edit' | 'alpha'

/** A parameter of image clients that its author says an input is for. */
export interface ImageParameter {
  readonly name:
    | ('prompt' | 'negative_prompt' | 'width' | 'height' | 'size' | 'n' | 'seed' | 'steps')
    | ('quality' | 'style' | 'background' | 'input_fidelity' | 'image' | 'mask')
  /** Of pictures: which of those that are sent, from 0. */
  readonly index?: number
  /** What each word of the parameter sets; left out: the word itself. */
  readonly values?: Readonly<Record<string, JsonValue>>
  /** Of masks; left out: such that loaders of either kind read it. */
  readonly convention?: MaskConvention
}

interface InputBase {
  readonly name: string
  readonly title: string
  readonly description: string
  /** A call without it is refused; one that is not required has a default. */
  readonly isRequired: boolean
  /** Everything that a call's value replaces. */
  readonly places: readonly Place[]
  /** As in the workflow that was published: with all examples the graph is that of the workflow. */
  readonly example: JsonValue
  /** Left out: its author says nothing, and names and types tell. */
  readonly parameters?: readonly ImageParameter[]
}

export interface TextInput extends InputBase {
  readonly type: 'text'
  readonly default: string | null
  readonly maxLength: number
  readonly minLength: number
  /** A regular expression that the whole text must match; null: any. */
  readonly pattern: string | null
  readonly isMultiline: boolean
}

export interface NumberInput extends InputBase {
  readonly type: 'integer' | 'number'
  /** An exact integer may be a text of digits. */
  readonly default: JsonValue
  readonly minimum: JsonValue
  readonly maximum: JsonValue
  /** Told, not demanded: 0.1 has no exact multiples. null: any. */
  readonly step: number | null
}

/** Random unless given; the value that was used is told with the run. */
export interface SeedInput extends InputBase {
  readonly type: 'seed'
  readonly minimum: JsonValue
  readonly maximum: JsonValue
}

interface SwitchInput extends InputBase {
  readonly type: 'boolean'
  readonly default: boolean
}

export interface ChoiceInput extends InputBase {
  readonly type: 'choice'
  readonly default: JsonValue
  readonly choices: readonly JsonValue[]
  /** The names of files on the engines: what they have when the job is submitted counts, and `choices` are examples. */
  readonly isOpen: boolean
}

export interface FileInput extends InputBase {
  readonly type: 'file'
  readonly kind: FileKind
  readonly maxBytes: number | null
  /** Of pictures: width times height. */
  readonly maxPixels: number | null
}

export type EndpointInput = TextInput | NumberInput | SeedInput | SwitchInput | ChoiceInput | FileInput

/** What a node of the graph makes, under a name. */
export interface EndpointOutput {
  readonly name: string
  readonly title: string
  readonly nodeId: string
  readonly kind: FileKind | 'text'
}

/** What an engine must have to run a version. */
export interface Required {
  readonly classes: readonly string[]
  readonly weights: readonly { readonly folder: string | null; readonly name: string }[]
  /** What its deployment served when it was published; left out: it had none, or one that is on no release. */
  readonly release?: VersionRelease
}

export interface VersionRelease {
  readonly deployment: string
  /** The number of the release within its build. */
  readonly version: number
  /** It runs on this release alone; otherwise on whichever its deployment serves. */
  readonly isPinned: boolean
}

/** What a publish stores. */
export interface VersionContent {
  /** API format, as JSON text, with the examples in it. */
  readonly graph: string
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
  readonly required: Required
}

type ProblemReason =
  | 'unknown'
  | 'missing'
  | 'wrong_type'
  | 'too_small'
  | 'too_large'
  | 'too_short'
  | 'too_long'
  | 'not_one_of'
  | 'no_match'
  | FileFault

/** What is wrong with an input of a call. */
export interface InputProblem {
  readonly name: string
  readonly reason: ProblemReason
  /** A sentence that begins with the name. */
  readonly message: string
  readonly allowed?: readonly JsonValue[]
  readonly minimum?: JsonValue
  readonly maximum?: JsonValue
}

export interface EndpointVersion extends VersionContent {
  /** What must hold of a call beyond the types and bounds of its inputs; left out: nothing. */
  readonly rule?: (given: JsonObject) => readonly InputProblem[]
  readonly number: number
  /** blake3 of the content: publishing the same again makes no new version. */
  readonly hash: string
  readonly note: string
  readonly createdAt: Date
  /** The API key that published it; null: none. */
  readonly createdBy: string | null
}

/** stopped: by its owner; it takes no calls. */
export type EndpointState = 'ready' | 'stopped'

export interface Endpoint {
  readonly accountId: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly state: EndpointState
  /** What a call without a version runs. */
  readonly currentVersion: number
  /** The highest number that was given out. */
  readonly lastVersion: number
  /** Names of versions that the owner moves. */
  readonly aliases: Readonly<Record<string, number>>
  readonly settings: EndpointSettings
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Grows with every change, for compare-and-set. */
  readonly revision: number
  /** The service offers it to every account, and nobody can change it; left out: it is the account's own. */
  readonly isOfService?: true
}

/** What holds for all versions. */
export interface EndpointSettings {
  /** Whose jobs' pool its runs wait in; null: the common one. */
  readonly deployment: string | null
  /** Offered as a tool to agents. */
  readonly isTool: boolean
  /** Further names under which image clients ask for it. */
  readonly models: readonly string[]
  readonly limits: RunLimits
  /** The ids of other accounts that may call it, under `owner/name`; of EVERYONE, whoever has an account. */
  readonly callers: readonly string[]
  /** Set by operators; null: what the pool of its runs costs. */
  readonly price: EndpointPrice | null
}

export const DEFAULT_SETTINGS: EndpointSettings = {
  ...{ deployment: null, isTool: true, models: [], callers: [] },
  ...{ limits: NO_LIMITS, price: null },
}

/** Among callers: every account. */
export const EVERYONE = '*'

/** What an account calls it by: one of another account has its owner before its name. */
export function nameFor(accountId: string, { accountId: owner, name }: Pick<Endpoint, 'accountId' | 'name'>): string {
  return owner === accountId ? name : `${owner}/${name}`
}

export function mayCall(accountId: string, { accountId: owner, settings }: Endpoint): boolean {
  return owner === accountId || settings.callers.includes(accountId) || settings.callers.includes(EVERYONE)
}

/** What a run costs that succeeds. One that was canceled after it had begun costs its seconds, one that fails nothing. */
export type EndpointPrice =
  | { readonly kind: 'free' }
  | { readonly kind: 'per_run'; readonly micros: Micros }
  /** Of the time that it takes, at most that of so many seconds. */
  | { readonly kind: 'per_second'; readonly micros: Micros; readonly maxSeconds: number }

/** null: it costs nothing. */
export function toJobPrice(price: EndpointPrice): PoolPrice | null {
  if (price.kind === 'free') return null
  const { micros } = price
  if (price.kind === 'per_run') return { perSecondMicros: 0, minimumMicros: micros, holdMicros: micros, isAgreed: true }
  const holdMicros = priceOfTime(micros, price.maxSeconds * 1000)
  return { perSecondMicros: micros, minimumMicros: 0, holdMicros, isAgreed: true }
}

/** What its runs are counted under. */
export function scopeOfEndpoint(name: string): string {
  return `endpoint:${name}`
}
