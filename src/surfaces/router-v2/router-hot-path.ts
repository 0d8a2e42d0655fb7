/**
 * Running a model, answered in front of the framework: it is the most frequent request, and a call that takes minutes would
 * hold the framework's objects as long. The same guards run; at the first irregularity before the body the request is left,
 * untouched, to the framework.
 */
import type { IncomingMessage } from 'node:http'
import type { Caller } from '../../domain/accounts/caller.ts'
import { mustNameNoDeployment } from '../kit/guards/deployment-address.ts'
import type { Gate, ServiceAddress } from '../kit/guards/gate.ts'
import { markRoute } from '../kit/request-identity.ts'
import type { HotRoute } from '../kit/surface.ts'
import { MODEL_ROUTE, MODELS_PATH } from './router-operation.ts'
import type { ServeRun } from './serve-run.ts'

export function createHotPath(gate: Gate, serveRun: ServeRun): HotRoute {
  const prefix = `${gate.mountPrefix}${MODELS_PATH}/`

  function identify(request: IncomingMessage): { readonly address: ServiceAddress; readonly caller: Caller } | null {
    try {
      const address = gate.admit(request)
      mustNameNoDeployment(address)
      const caller = gate.authenticate(request, 'api_key')
      return caller instanceof Promise ? null : { address, caller }
    } catch {
      return null // the framework's hooks run into the same refusal and answer it
    }
  }

  return (request, response) => {
    const { url } = request
    if (request.method !== 'POST' || url === undefined || !url.startsWith(prefix)) return false
    const end = url.indexOf('?')
    const path = end === -1 ? url.slice(prefix.length) : url.slice(prefix.length, end)
    const slash = path.indexOf('/')
    // Two plain segments and nothing else; whatever is escaped goes the long way.
    if (slash === -1 || path.includes('/', slash + 1) || path.includes('%')) return false
    const known = identify(request)
    if (known === null) return false
    markRoute(request, gate.mountPrefix + MODEL_ROUTE)
    void serveRun(request, response, { ...known, provider: path.slice(0, slash), model: path.slice(slash + 1) })
    return true
  }
}
