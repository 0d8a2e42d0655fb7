/** Composes the tools for agents with a connection over standard input and output. The surface that has them may be left out. */
import { openPictures } from '../compose/asset-actions.ts'
import type { AgentConnection } from '../surfaces/kit/surface-parts.ts'
import { openAgentTools } from '../surfaces/optional-surfaces.ts'

/** False: this program was built without tools for agents. */
export async function serveAgentOverStdio(connection: Omit<AgentConnection, 'pictures'>): Promise<boolean> {
  const serveAgent = await openAgentTools()
  await serveAgent?.({ ...connection, pictures: openPictures() })
  return serveAgent !== null
}
