/**
 * Proxies and kernels may drop a silent connection; we do not while its call may still end well. Most calls end long before the
 * connection counts as idle, so its timer is left alone until it fires.
 */
import type { ServerResponse } from 'node:http'

/** To be called before the answer begins; `holdMs`: how long the connection may be silent until then. */
export function holdOpen(response: ServerResponse, holdMs: number): void {
  const { socket } = response
  const idleMs = socket?.timeout ?? 0
  if (idleMs === 0 || idleMs >= holdMs) socket?.setTimeout(holdMs)
  else response.once('timeout', () => socket?.setTimeout(holdMs - idleMs))
}
