/**
 * Endpoints that the service itself offers to its accounts, beside those that an account has published. One of the account with the same name
 * comes first. They never change, but for the files that they are made of.
 */
import type { Endpoint, EndpointVersion } from './endpoint.ts'
import type { EndpointStore } from './endpoint-store.ts'

export interface Offered {
  readonly endpoint: Endpoint
  readonly version: EndpointVersion
}

export interface ServiceEndpoints {
  /** null: there is none of this name for this account. */
  find(accountId: string, name: string): Offered | null
  /** By name, after the given one. */
  list(accountId: string, page: { readonly after: string | null; readonly limit: number }): readonly Endpoint[]
  findByHash(accountId: string, hash: string): readonly { readonly name: string; readonly number: number }[]
}

export type ReadEndpoints = Pick<
  EndpointStore,
  'find' | 'list' | 'findByModel' | 'findByHash' | 'findVersion' | 'listVersions'
>

/** Both, as if they were stored together. */
export function withService(store: ReadEndpoints, service: ServiceEndpoints): ReadEndpoints {
  return {
    find: async (key) => (await store.find(key)) ?? service.find(key.accountId, key.name)?.endpoint ?? null,
    async list(accountId, { after, limit }) {
      const own = await store.list(accountId, { after, limit })
      const names = new Set(own.map(({ name }) => name))
      const others = service.list(accountId, { after, limit: limit + own.length })
      return [...own, ...others.filter(({ name }) => !names.has(name))]
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .slice(0, limit)
    },
    findByModel: (accountId, model) => store.findByModel(accountId, model),
    async findByHash(accountId, hash) {
      const own = await store.findByHash(accountId, hash)
      const shown = service.findByHash(accountId, hash)
      const isShown = await Promise.all(shown.map(async ({ name }) => (await store.find({ accountId, name })) === null))
      return [...own, ...shown.filter((_, index) => isShown[index])]
    },
    async findVersion(key, number) {
      const version = await store.findVersion(key, number)
      const offered = version === null ? service.find(key.accountId, key.name)?.version : undefined
      if (offered?.number !== number) return version
      return (await store.find(key)) === null ? offered : null
    },
    async listVersions(key, page) {
      if ((await store.find(key)) !== null) return store.listVersions(key, page)
      const offered = service.find(key.accountId, key.name)?.version
      return offered === undefined || (page.before !== null && offered.number >= page.before) ? [] : [offered]
    },
  }
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
// They stand in addresses where a name could stand, or mean something to callers already.
const RESERVED: ReadonlySet<string> = new Set(['preview', 'import', 'openapi', 'docs', 'runs', 'versions'])

export const isName = (text: string): boolean => NAME.test(text)
export const isReservedName = (text: string): boolean => RESERVED.has(text)
export const isFreeName = (text: string): boolean => isName(text) && !isReservedName(text)
