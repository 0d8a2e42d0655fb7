/**
 * ComfyUI's own editor: the user's copy of its static files, with templates, help for nodes and a style sheet of the user's, and the form
 * to sign in with. The files are public, as they hold nobody's data; what the page asks of the service is asked of the Legacy v1 API
 * beside it. This surface has a listener of its own: its scripts must not share an origin with the console.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { SignIn } from '../../domain/accounts/sign-in.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Gate } from '../kit/guards/gate.ts'
import { needs, PUBLIC_PAGE, sendError, serviceAddressOf } from '../kit/guards/routes.ts'
import { pathOf } from '../kit/request.ts'
import { type AnswerError, mount, type Surface } from '../kit/surface.ts'
import { createEditorPages, FIRST_GRAPH_PATH, FIRST_GRAPH_SCRIPT, toEditorPolicy } from './editor-page.ts'
import { createSendFile, createServedFolder, findInAny, type ServedFile } from './send-file.ts'
import { answerStranger, registerSignIn } from './sign-in.ts'

interface FrontendOptions {
  readonly gate: Gate
  readonly signIn: SignIn
  readonly answerError: AnswerError
  readonly directory: string
  readonly templateDirectories: readonly string[]
  /** Hosts other than ours that addresses of outputs lead to. */
  readonly contentOrigins: readonly string[]
}

/** What the editor asks for at its first visit, and takes amiss when it is missing. */
const WITHOUT_TEMPLATES: Readonly<Record<string, string>> = { 'index.json': '[]', 'index_logo.json': '{}' }

export function createFrontendSurface(options: FrontendOptions): Surface {
  const { gate, answerError } = options
  const folder = createServedFolder(options.directory)
  const pages = createEditorPages(folder)
  const templates = options.templateDirectories.map(createServedFolder)
  const sendFile = createSendFile()

  /** Also for scripts, since one that runs as a worker is under the policy that it is sent with. */
  function setPolicy(request: FastifyRequest, reply: FastifyReply, scriptDigests: readonly string[]): void {
    const { origin } = serviceAddressOf(request)
    const { contentOrigins } = options
    reply.headers({
      'Content-Security-Policy': toEditorPolicy({ scriptDigests, origin, contentOrigins }),
      'Cross-Origin-Opener-Policy': 'same-origin',
      // Its own addresses hold the names of workflows; other hosts learn nothing of them.
      'Referrer-Policy': 'same-origin',
    })
  }

  async function sendPage(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const answered = await answerStranger(request, reply, options)
    if (answered !== null) return answered
    const page = await pages.current()
    if (page === null) throw new ServiceError('not_found', "the folder of ComfyUI's editor has no index.html")
    setPolicy(request, reply, page.scriptDigests)
    return reply.headers({ 'Content-Type': 'text/html; charset=utf-8' }).send(page.bytes)
  }

  async function send(request: FastifyRequest, reply: FastifyReply, file: ServedFile | null): Promise<FastifyReply> {
    if (file === null) throw new ServiceError('not_found', 'there is no such file')
    setPolicy(request, reply, [])
    return sendFile(request, reply, file)
  }

  function register(app: FastifyInstance): void {
    app.setErrorHandler((error, request, reply) => sendError(reply, answerError(error, request.id)))
    app.get('/', PUBLIC_PAGE, sendPage)
    app.get('/index.html', PUBLIC_PAGE, sendPage)
    registerSignIn(app, options)
    app.get(FIRST_GRAPH_PATH, needs('public'), async (_request, reply) =>
      reply
        .headers({ 'Content-Type': 'text/javascript; charset=utf-8', 'Cache-Control': 'no-cache' })
        .send(FIRST_GRAPH_SCRIPT),
    )
    app.get('/templates/*', needs('public'), async (request, reply) => {
      const name = restOf(request, '/templates/')
      const file = await findInAny(templates, name)
      const fallback = Object.hasOwn(WITHOUT_TEMPLATES, name) ? WITHOUT_TEMPLATES[name] : null
      if (file !== null || fallback === null) return send(request, reply, file)
      return reply.header('Content-Type', 'application/json; charset=utf-8').send(fallback)
    })
    app.get('/user.css', needs('public'), async (request, reply) => {
      const file = await folder.find('user.css')
      if (file !== null) return send(request, reply, file)
      return reply.headers({ 'Content-Type': 'text/css; charset=utf-8', 'Cache-Control': 'no-cache' }).send('')
    })
    app.get('/*', needs('public'), async (request, reply) =>
      send(request, reply, await folder.find(restOf(request, '/'))),
    )
  }

  return {
    name: 'comfyui-frontend',
    register: (app) => mount(app, gate.mountPrefix, register),
    allowedMethods: () => [],
  }
}

/** As it was sent: the folder decodes it once, segment by segment. */
function restOf({ raw }: FastifyRequest, prefix: string): string {
  return pathOf(raw.url ?? '').slice(prefix.length)
}
