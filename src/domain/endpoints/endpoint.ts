/**
 * A workflow as an endpoint: an address with named, typed inputs. An endpoint is a name that moves; what runs is one of its
 * versions, which never changes. A caller can set the inputs of a version and nothing else.
 */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'

/** What kind of file an input takes, or an output makes; `file` is any. */
export type FileKind = 'image' | 'mask' | 'video' | 'audio' | 'model3d' | 'file'

/** One value of the graph. */
export interface Place {
  readonly nodeId: string
  /** As in the graph, dots included. */
  readonly input: string
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
}

/** What a publish stores. */
export interface VersionContent {
  /** API format, as JSON text, with the examples in it. */
  readonly graph: string
  readonly inputs: readonly EndpointInput[]
  readonly outputs: readonly EndpointOutput[]
  readonly required: Required
}

export interface EndpointVersion extends VersionContent {
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
}

/** What holds for all versions. */
export interface EndpointSettings {
  /** Whose jobs' pool its runs wait in; null: the common one. */
  readonly deployment: string | null
  /** Offered as a tool to agents. */
  readonly isTool: boolean
  /** Further names under which image clients ask for it. */
  readonly models: readonly string[]
}
