/** Signed addresses: one for an account's own asset reveals nothing about the assets of others. */
import type { IsolationSurface } from '../surface.ts'

export const content: IsolationSurface = {
  name: 'content',
  spec: null,
  harmless: [],
  lists: [],
  async prepare(world) {
    const boundary = 'b'
    const part = (name: string, value: string) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const body = `${part('content_type', 'text/plain')}${part('file_path', 'a.txt')}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`
    const send = async (tenant: typeof world.caller, text: string) => {
      const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
      return tenant.call('/api/v2/assets', { method: 'POST', headers, body: `${body}${text}\r\n--${boundary}--\r\n` })
    }
    const mine = await send(world.caller, 'mine')
    const theirs = await send(world.other, 'theirs')
    const { search } = new URL(mine.json.url)
    const renamed = search.replace(`account=${world.caller.id}`, `account=${world.other.id}`)
    const at = (method: string, id: string, query: string) => ({ method, path: `/content/${id}${query}` })
    const cases = ['GET', 'HEAD'].flatMap((method) =>
      [
        ['with an address of one’s own', search],
        ['with the other account’s name', renamed],
        ['without any', ''],
      ].map(([title, query]) => ({
        operation: `${method} /content`,
        title: `${method} of an asset ${title}`,
        foreign: at(method, theirs.json.id, query),
        unknown: at(method, crypto.randomUUID(), query),
      })),
    )
    return { cases, owned: [`/api/v2/assets/${theirs.json.id}`] }
  },
}
