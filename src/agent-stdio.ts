/** Composes the tools for agents with a connection over standard input and output. The surface that has them may be left out. */
import { existsSync } from 'node:fs'
import { openPictures } from './compose/asset-actions.ts'
import type { AgentConnection, ServeAgent } from './surfaces/kit/agent-connection.ts'

/** False: this program was built without tools for agents. */
export async function serveAgentOverStdio(connection: Omit<AgentConnection, 'pictures'>): Promise<boolean> {
  const entry = new URL('./surfaces/mcp/stdio.ts', import.meta.url)
  if (!existsSync(entry)) return false
  const { serveAgent } = (await import(entry.href)) as { readonly serveAgent: ServeAgent }
  await serveAgent({ ...connection, pictures: openPictures() })
  return true
}
