/**
 * Requests that ask to leave HTTP for a WebSocket. Only those that a surface takes are let out of the HTTP server; every other
 * one is answered like an ordinary request. The guards run first, and a refusal is a plain answer in the surface's
 * envelope, before the handshake. A peer that is silent while its handshake is decided is cut.
 */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Gate } from '../guards/gate.ts'
import { requestIdOf } from '../request-identity.ts'
import { pathOf } from '../request-url.ts'
import type { AnswerError, Upgrade, UpgradeRoute } from '../surface.ts'
import { encodeAnswer } from './raw-answer.ts'

const HANDSHAKE_MS = 15_000

/** For the HTTP server's own decision. */
export function createShouldUpgrade(routes: readonly UpgradeRoute[]): (request: IncomingMessage) => boolean {
  return (request) => isWebSocket(request) && routes.some((route) => route.takes(pathOf(request.url ?? '')))
}

export function routeUpgrades(server: Server, routes: readonly UpgradeRoute[], gate: Gate): void {
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket
    const route = routes.find((one) => one.takes(pathOf(request.url ?? '')))
    // Nothing that happens to the connection from here on may end the process.
    socket.on('error', () => socket.destroy())
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy())
    if (route === undefined) socket.destroy()
    else void admit(route, { request, socket, head }, gate)
  })
}

async function admit(route: UpgradeRoute, upgrade: Upgrade, gate: Gate): Promise<void> {
  try {
    gate.admit(upgrade.request)
    await route.open(upgrade)
  } catch (error) {
    refuseUpgrade(upgrade, gate, { error, answerError: route.answerError })
  }
}

/** Answers in plain HTTP and ends the connection. */
export function refuseUpgrade(
  { request, socket }: Pick<Upgrade, 'request' | 'socket'>,
  gate: Pick<Gate, 'answerHeaders'>,
  { error, answerError }: { readonly error: unknown; readonly answerError: AnswerError },
): void {
  if (!socket.writable || socket.destroyed) {
    socket.destroy()
    return
  }
  const requestId = requestIdOf(request)
  const headers = gate.answerHeaders(request.headers.origin, requestId)
  socket.write(encodeAnswer(headers, answerError(error, requestId)))
  socket.destroySoon()
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
}
