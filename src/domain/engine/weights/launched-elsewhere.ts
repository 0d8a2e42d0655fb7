/**
 * What to say about weights of an engine whose disk this process cannot write: an upload must reach the process that launched the
 * engine, so the refusal names that process and its address.
 */
import { invalidField, ServiceError } from '../../errors.ts'
import type { ServiceNode } from '../../service-nodes/node-store.ts'
import type { ListedEngine } from '../directory/engine-directory.ts'

/** The processes of the service that live, this one included. */
export type FindNodes = () => Promise<readonly Pick<ServiceNode, 'id' | 'about'>[]>

type Launched = Pick<ListedEngine, 'id' | 'isSupervised' | 'drivenBy'>

/** For an engine that the request names. */
export async function refuseEngine(engine: Launched, findNodes: FindNodes): Promise<never> {
  if (!engine.isSupervised) {
    const problem = 'was not launched by this service, so its disk cannot be written; put the file there by hand'
    throw invalidField('engine', problem, { driven_by: engine.drivenBy })
  }
  const { text, details } = await describe(engine, findNodes)
  throw invalidField('engine', `was launched by ${text}`, details)
}

/** For a request that names no engine, where none was launched here. */
export async function refuseAll(engines: readonly Launched[], findNodes: FindNodes): Promise<never> {
  const engine = engines.find(({ isSupervised }) => isSupervised)
  if (engine === undefined) {
    throw new ServiceError('not_found', 'this process has launched no engine (comfyuiLaunch)')
  }
  const { text, details } = await describe(engine, findNodes)
  throw new ServiceError('not_found', `this process has launched no engine; ${engine.id} was launched by ${text}`, {
    details: { engine: engine.id, ...details },
  })
}

export async function refuseUpload(findNodes: FindNodes): Promise<never> {
  const isAlone = (await findNodes()).length < 2
  const hint = isAlone ? '' : ' in this process; an upload is known to the process that launched its engine'
  throw new ServiceError('not_found', `there is no upload with this id${hint}`)
}

async function describe({ drivenBy }: Launched, findNodes: FindNodes) {
  const about = (await findNodes()).find(({ id }) => id === drivenBy)?.about
  const details = { driven_by: drivenBy, host: about?.host ?? null, url: about?.url ?? null }
  if (about === undefined) {
    return { text: 'another process of the service, which is away just now; try again later', details }
  }
  const name = `process ${drivenBy} on ${about.host}`
  if (about.role === 'worker') {
    const remedy = 'put the file there by hand, or launch the engine in a process with the role all'
    return { text: `${name}, a worker that takes no requests; ${remedy}`, details }
  }
  return { text: `${name}; send the request to it${about.url === undefined ? '' : ` (${about.url})`}`, details }
}
