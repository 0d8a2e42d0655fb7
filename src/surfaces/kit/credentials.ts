/**
 * One static bearer token, or none. Without a configured token any `Authorization` header is ignored, because clients send
 * the key of another service along; with one, the comparison runs over digests of equal length and takes the same time
 * whatever was sent.
 */
import { hash, timingSafeEqual } from 'node:crypto'

const BEARER = /^bearer +([^\s]+) *$/i

export type BearerCheck = (authorization: string | undefined) => boolean

export function createBearerCheck(token: string | null): BearerCheck {
  if (token === null) return () => true
  const expected = digest(token)
  return (authorization) => {
    const sent = authorization === undefined ? null : BEARER.exec(authorization)
    return sent !== null && timingSafeEqual(digest(sent[1]), expected)
  }
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
