/** Which methods exist under a path, out of the registered routes: for the `Allow` header of a wrong one. */
export interface MethodTable {
  /** Routes as `METHOD /path/:parameter`. */
  learn(routes: readonly string[]): void
  of(path: string): readonly string[]
}

export function createMethodTable(mountPrefix: string): MethodTable {
  const patterns = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>()
  return {
    learn(routes) {
      for (const route of routes) {
        const [method, url] = route.split(' ')
        const known = patterns.get(url) ?? { pattern: toPattern(url), methods: new Set() }
        known.methods.add(method)
        if (method === 'GET') known.methods.add('HEAD')
        patterns.set(url, known)
      }
    },
    of(path) {
      if (!path.startsWith(mountPrefix)) return []
      const own = path.slice(mountPrefix.length)
      const found = [...patterns.values()].filter(({ pattern }) => pattern.test(own))
      return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort()
    },
  }
}

function toPattern(url: string): RegExp {
  return new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}$`)
}
