/** The admin API and the operator's pages: no account's key opens them, and nobody learns what is there by trying. */
import { readFileSync } from 'node:fs'
import type { IsolationCase, IsolationSurface } from '../surface.ts'

const SPEC = 'spec/admin.openapi.json'
const UNKNOWN_KEY = '000000000000'

export const admin: IsolationSurface = {
  name: 'admin',
  spec: SPEC,
  harmless: [],
  async cases({ app, other, deployment }) {
    const { json } = await app.admin('GET', `/accounts/${other.id}/keys`)
    const known: Record<string, string> = { accounts: other.id, keys: json.keys[0].id, deployments: deployment }
    const unknown: Record<string, string> = { accounts: 'nobody', keys: UNKNOWN_KEY, deployments: 'nowhere' }
    const { paths } = JSON.parse(readFileSync(new URL(`../../../${SPEC}`, import.meta.url), 'utf8')) as {
      paths: Record<string, Record<string, { operationId: string }>>
    }
    return Object.entries(paths).flatMap(([path, item]): IsolationCase[] => {
      const kind = path.split('/')[3]
      return Object.entries(item).map(([verb, { operationId }]) => {
        const method = verb.toUpperCase()
        const at = (ids: Record<string, string>) => ({ method, path: path.replace('{id}', ids[kind]) })
        return { operation: operationId, title: `${method} ${path}`, foreign: at(known), unknown: at(unknown) }
      })
    })
  },
}
