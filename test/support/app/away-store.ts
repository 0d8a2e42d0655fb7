/** A store whose database goes away and comes back: meanwhile every operation is refused as an adapter refuses it. */
import { storeUnavailable } from '../../../src/domain/errors.ts'
import type { Store } from '../../../src/domain/store.ts'

export interface Outages {
  isAway: boolean
  /** Operations that were refused so far. */
  refused: number
  /** Resolves when so many have been refused. */
  untilRefused(count: number): Promise<void>
  wrapStore(store: Store): Store
}

// Answered from memory, whatever the database does.
const LOCAL: ReadonlySet<string | symbol> = new Set(['stats', 'failed', 'audited', Symbol.asyncDispose])

export function createOutages(): Outages {
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []
  const outages: Outages = {
    isAway: false,
    refused: 0,
    async untilRefused(count) {
      if (outages.refused < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }))
    },
    wrapStore: (store) => wrap(store),
  }

  function refuse(): Promise<never> {
    outages.refused++
    for (const { count, resolve } of waiting) if (count <= outages.refused) resolve()
    waiting = waiting.filter(({ count }) => count > outages.refused)
    return Promise.reject(storeUnavailable(new Error('connection refused')))
  }

  function wrap<Target extends object>(target: Target): Target {
    return new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name)
        if (LOCAL.has(name)) return typeof value === 'function' ? value.bind(target) : value
        if (typeof value === 'function') {
          return (...args: unknown[]) => (outages.isAway ? refuse() : value.apply(target, args))
        }
        return typeof value === 'object' && value !== null ? wrap(value) : value
      },
    })
  }

  return outages
}
