// A browser starts no worker on a page that was opened as a file. There the search runs in a hidden frame.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(script) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const scope = this.frame.contentWindow
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
      this.started = new Promise(resolve => {
        const element = scope.document.createElement("script")
        element.src = new URL(script, location.href)
        element.onload = () => resolve(scope)
        scope.document.body.append(element)
      })
    }
    postMessage(data) {
      this.started.then(scope => scope.dispatchEvent(new MessageEvent("message", {data})))
    }
    terminate() {
      this.frame.remove()
    }
  }
