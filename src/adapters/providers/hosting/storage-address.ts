/** Where an object of Google's storage, named `gs://bucket/object`, is read over HTTP. Other addresses stay as they are. */
const GOOGLE_STORAGE = /^gs:\/\/([^/]+)\/(.+)$/

export function toDownloadUrl(address: string): string {
  const found = GOOGLE_STORAGE.exec(address)
  if (found === null) return address
  const [, bucket, object] = found
  const name = encodeURIComponent(object)
  return `https://storage.googleapis.com/storage/v1/b/${encodeURIComponent(bucket)}/o/${name}?alt=media`
}
