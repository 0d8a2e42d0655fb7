/** The admin API and the operator's pages: no account's key gives access, and trying does not reveal what exists. */
import { readOperations } from '../contract.ts'
import type { IsolationCase, IsolationSurface } from '../surface.ts'

const SPEC = 'spec/admin.openapi.json'
const UNKNOWN_KEY = '000000000000'

export const admin: IsolationSurface = {
  name: 'admin',
  spec: SPEC,
  harmless: [],
  lists: [],
  async prepare({ app, other, deployment }) {
    const { json } = await app.admin('GET', `/accounts/${other.id}/keys`)
    const worker = await app.admin('POST', '/workers/keys', {})
    const known: Record<string, string> = {
      ...{ accounts: other.id, keys: json.keys[0].id, deployments: deployment, workers: worker.json.id },
    }
    const unknown: Record<string, string> = {
      ...{ accounts: 'nobody', keys: UNKNOWN_KEY, deployments: 'nowhere', workers: UNKNOWN_KEY },
    }
    const cases = readOperations(SPEC).map(({ id, method, path }): IsolationCase => {
      const kind = path.split('/')[3]
      const at = (ids: Record<string, string>) => ({ method, path: path.replace('{id}', ids[kind]) })
      return { operation: id, title: `${method} ${path}`, foreign: at(known), unknown: at(unknown) }
    })
    return { cases, owned: ['/api/v2/jobs'] }
  },
}
