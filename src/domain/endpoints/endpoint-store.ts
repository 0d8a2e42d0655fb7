import type { Micros } from '../../../lib/text/usd.ts'
import type { JobStatus } from '../jobs/transitions.ts'
import type { Endpoint, EndpointPrice, EndpointVersion } from './endpoint.ts'

export interface Publish {
  readonly accountId: string
  readonly name: string
  /** Of a new endpoint; null: as they are. */
  readonly texts: Partial<Pick<Endpoint, 'title' | 'description' | 'settings'>>
  /** Without a number: the store gives the next one. */
  readonly version: Omit<EndpointVersion, 'number'>
  /** The revision of the endpoint that the publish was judged by; null: there was none. */
  readonly revision: number | null
  /** How many endpoints an account may have. Ten times as many names may be used in all, as those of removed ones are kept. */
  readonly limit: number
}

export type Published =
  /** `isNew` false: the endpoint has this very content already, under this number. It is the current version again. */
  | {
      readonly outcome: 'published'
      readonly endpoint: Endpoint
      readonly version: EndpointVersion
      readonly isNew: boolean
    }
  /** The endpoint has changed since. */
  | { readonly outcome: 'changed' }
  | { readonly outcome: 'too_many' }

export type EndpointChange = Partial<
  Pick<Endpoint, 'title' | 'description' | 'state' | 'currentVersion' | 'aliases' | 'settings'>
>

export interface EndpointKey {
  readonly accountId: string
  readonly name: string
}

/** What a list of versions says of each. */
export type VersionSummary = Pick<EndpointVersion, 'number' | 'hash' | 'note' | 'createdAt' | 'createdBy' | 'required'>

export interface EndpointRunsQuery extends EndpointKey {
  /** Runs of the account itself, or those that other accounts made of its endpoint. */
  readonly whose: 'own' | 'others'
  /** null: in every pool. */
  readonly pool: string | null
  /** Where each day begins, ascending, and at last where the last one ends. */
  readonly edges: readonly Date[]
}

/** By the place of the day among the edges, and by version. */
export interface EndpointRuns {
  readonly runs: readonly {
    readonly place: number
    readonly version: number | null
    readonly status: JobStatus
    readonly runs: number
    readonly runMs: number
  }[]
  readonly charges: readonly { readonly place: number; readonly version: number | null; readonly charged: Micros }[]
}

export interface EndpointStore {
  publish(publish: Publish): Promise<Published>
  find(key: EndpointKey): Promise<Endpoint | null>
  /** By name, after the given one. */
  list(accountId: string, page: { readonly after: string | null; readonly limit: number }): Promise<readonly Endpoint[]>
  /** Those of other accounts that this one may call, by owner and name, after the given one. */
  listShared(
    accountId: string,
    page: { readonly after: EndpointKey | null; readonly limit: number },
  ): Promise<readonly Endpoint[]>
  /** The first by name that has this among the names in its settings under which image clients ask for it. */
  findByModel(accountId: string, model: string): Promise<Endpoint | null>
  /** null: it is unknown, or no longer at this revision. */
  change(key: EndpointKey, revision: number, change: EndpointChange, at: Date): Promise<Endpoint | null>
  /** The versions and the links to its page go with it. Its name can be published again, and its numbers count on. */
  remove(key: EndpointKey, at: Date): Promise<boolean>
  /** null: it is unknown. */
  setPrice(key: EndpointKey, price: EndpointPrice | null, at: Date): Promise<Endpoint | null>
  findVersion(key: EndpointKey, number: number): Promise<EndpointVersion | null>
  /** The versions of this content, by the name of their endpoint. */
  findByHash(accountId: string, hash: string): Promise<readonly { readonly name: string; readonly number: number }[]>
  /** Those of other accounts that this one may call, by owner and name; a bounded number. */
  findSharedByHash(accountId: string, hash: string): Promise<readonly (EndpointKey & { readonly number: number })[]>
  /** The newest first, below the given number. */
  listVersions(
    key: EndpointKey,
    page: { readonly before: number | null; readonly limit: number },
  ): Promise<readonly VersionSummary[]>
  /** Of jobs that are still kept, by when they were accepted; charges, less refunds, by when they were made. */
  findRuns(query: EndpointRunsQuery): Promise<EndpointRuns>
}
