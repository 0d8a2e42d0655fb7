/**
 * The listener of ComfyUI's own editor: the user's copy of its files, the Legacy v1 API that it asks, and the content that addresses lead
 * to. It stands beside the other surfaces on a port of its own, so that the editor's scripts, and those of whatever extends it, share no
 * origin with the console.
 */

import { stat } from 'node:fs/promises'
import path from 'node:path'
import type { FrontendConfig } from '../config/blocks/http-config.ts'
import { FIRST_GRAPH_PATH } from '../surfaces/comfyui-frontend/editor-page.ts'
import { createFrontendSurface } from '../surfaces/comfyui-frontend/index.ts'
import { createGate, type Gate, type GateOptions } from '../surfaces/kit/guards/gate.ts'
import { readEditorSession } from '../surfaces/kit/guards/session-cookie.ts'
import type { Surface } from '../surfaces/kit/surface.ts'
import type { SurfaceParts } from '../surfaces/kit/surface-parts.ts'
import { openOptionalSurface } from '../surfaces/optional-surfaces.ts'
import { openServer, type RunningServer, type ServerOptions } from '../surfaces/server.ts'

interface FrontendParts {
  /** Of the gate before the other surfaces. */
  readonly gateOptions: GateOptions
  readonly surfaceParts: SurfaceParts
  readonly createContent: (gate: Gate) => Surface
  readonly server: Omit<ServerOptions, 'port' | 'gate' | 'surfaces'>
}

/** What the settings name cannot be used. */
class FrontendError extends Error {
  override readonly name = 'FrontendError'
}

export async function openFrontend(config: FrontendConfig, parts: FrontendParts): Promise<RunningServer> {
  const { gateOptions, surfaceParts, createContent, server } = parts
  await refuseWrongFolder(config)
  const gate = createGate({
    ...gateOptions,
    // Pages of other origins have the other listener to ask.
    corsOrigins: [],
    publicUrl: config.publicUrl,
    mountPrefix: '',
    deploymentHosts: null,
    sessionOf: readEditorSession,
  })
  const { contentOrigins, signIn } = surfaceParts.console
  const legacy = await openOptionalSurface('legacy-v1', {
    ...surfaceParts,
    gate,
    isForEditor: true,
    editorScripts: [FIRST_GRAPH_PATH],
  })
  if (legacy === null)
    throw new FrontendError('comfyuiFrontend needs the Legacy v1 API, which this build does not have')
  const frontend = createFrontendSurface({ ...config, gate, signIn, contentOrigins, answerError: server.answerError })
  try {
    return await openServer({ ...server, port: config.port, gate, surfaces: [legacy, createContent(gate), frontend] })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    throw new FrontendError(
      `port ${config.port} is taken, perhaps by ComfyUI itself; choose another for its editor with --comfyui-frontend-port`,
    )
  }
}

async function refuseWrongFolder({ directory }: FrontendConfig): Promise<void> {
  const page = await stat(path.join(directory, 'index.html')).catch(() => null)
  if (page?.isFile() === true) return
  throw new FrontendError(
    `comfyuiFrontend = ${JSON.stringify(directory)} has no index.html; \`atelier doctor\` says how to get a copy of the editor`,
  )
}
