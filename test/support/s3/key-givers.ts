/**
 * Who gives keys to programs on Amazon's machines, on the loopback interface: the service that takes web identities, the endpoint of
 * a container, and the metadata of a machine. All give keys of sessions that a fake storage takes.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { KnownKeys } from './check-signature.ts'
import { collect } from './s3-wire.ts'

export interface KeyGivers extends AsyncDisposable {
  readonly url: string
  /** What was asked for, one line each. */
  readonly asked: string[]
  /** What a caller has to show: the token of a web identity, or the authorization of a container. */
  secret: string
  /** Everything is answered with this status; null: with keys. */
  status: number | null
}

interface Answer {
  readonly status: number
  readonly body: string
}

const ROLE_PATH = '/latest/meta-data/iam/security-credentials/'
const MACHINE_TOKEN = 'token-of-the-machine'

export async function startKeyGivers(issue: () => KnownKeys): Promise<KeyGivers> {
  const server = createServer((request, response) => {
    void collect(request).then((sent) => {
      const { status, body } = answer(request, new URLSearchParams(sent.toString()))
      response.writeHead(status).end(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const givers: KeyGivers = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: [],
    secret: 'shown',
    status: null,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  function answer(request: IncomingMessage, form: URLSearchParams): Answer {
    const { pathname } = new URL(request.url ?? '/', givers.url)
    givers.asked.push(`${request.method} ${form.get('Action') ?? pathname}`)
    if (givers.status !== null) return { status: givers.status, body: toStsError('AccessDenied') }
    if (request.method === 'POST') return answerWebIdentity(form)
    if (pathname === '/container') {
      return request.headers.authorization === givers.secret ? { status: 200, body: toJson(issue()) } : NOT_ALLOWED
    }
    return answerMachine(request, pathname)
  }

  function answerWebIdentity(form: URLSearchParams): Answer {
    const isRight = form.get('Action') === 'AssumeRoleWithWebIdentity' && form.get('RoleArn') === ROLE
    if (!isRight || form.get('WebIdentityToken') !== givers.secret)
      return { status: 400, body: toStsError('InvalidIdentityToken') }
    const { id, secret, token, expiresAt } = issue()
    const inside = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${token}</SessionToken><Expiration>${expiresAt?.toISOString()}</Expiration>`
    const body = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>${inside}</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
    return { status: 200, body }
  }

  /** The second version of the protocol: nothing without a token that was asked for first. */
  function answerMachine(request: IncomingMessage, pathname: string): Answer {
    if (request.method === 'PUT' && pathname === '/latest/api/token') return { status: 200, body: MACHINE_TOKEN }
    if (request.headers['x-aws-ec2-metadata-token'] !== MACHINE_TOKEN) return NOT_ALLOWED
    if (pathname === ROLE_PATH) return { status: 200, body: 'the-role' }
    return pathname === `${ROLE_PATH}the-role` ? { status: 200, body: toJson(issue()) } : NOT_ALLOWED
  }

  return givers
}

export const ROLE = 'arn:aws:iam::123456789012:role/atelier'
const NOT_ALLOWED: Answer = { status: 401, body: '' }

function toJson({ id, secret, token, expiresAt }: KnownKeys): string {
  return JSON.stringify({
    AccessKeyId: id,
    SecretAccessKey: secret,
    Token: token,
    Expiration: expiresAt?.toISOString(),
  })
}

function toStsError(code: string): string {
  return `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>it was refused</Message></Error></ErrorResponse>`
}
