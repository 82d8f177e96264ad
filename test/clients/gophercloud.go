package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/containers"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/objects"
	"github.com/gophercloud/gophercloud/v2/openstack/objectstorage/v1/swauth"
)

func main() {
	ctx := context.Background()
	checks := map[string]bool{}
	provider, err := openstack.NewClient(os.Args[1])
	if err != nil {
		panic(err)
	}
	client, err := swauth.NewObjectStorageV1(ctx, provider, swauth.AuthOpts{User: os.Args[2], Key: os.Args[3]})
	if err != nil {
		panic(err)
	}
	box := "gophercloud"
	_, err = containers.Create(ctx, client, box, containers.CreateOpts{Metadata: map[string]string{"Color": "blue"}}).Extract()
	checks["create container"] = err == nil
	meta, err := containers.Get(ctx, client, box, nil).ExtractMetadata()
	checks["container metadata"] = err == nil && meta["Color"] == "blue"
	content := bytes.Repeat([]byte("content"), 1000)
	_, err = objects.Create(ctx, client, box, "a b/ü", objects.CreateOpts{Content: bytes.NewReader(content)}).Extract()
	checks["create object"] = err == nil
	got := objects.Download(ctx, client, box, "a b/ü", nil)
	body, err := io.ReadAll(got.Body)
	checks["download"] = err == nil && bytes.Equal(body, content)
	pages, err := objects.List(client, box, objects.ListOpts{}).AllPages(ctx)
	checks["list"] = err == nil
	names, err := objects.ExtractNames(pages)
	checks["names"] = err == nil && len(names) == 1 && names[0] == "a b/ü"
	_, err = objects.Copy(ctx, client, box, "a b/ü", objects.CopyOpts{Destination: "/" + box + "/copied"}).Extract()
	checks["copy"] = err == nil
	_, err = objects.Update(ctx, client, box, "copied", objects.UpdateOpts{Metadata: map[string]string{"k": "v"}}).Extract()
	checks["update"] = err == nil
	url, err := objects.CreateTempURL(ctx, client, box, "copied", objects.CreateTempURLOpts{Method: "GET", TTL: 60, TempURLKey: "k"})
	checks["temporary URL"] = err == nil && url != ""
	_, err = objects.BulkDelete(ctx, client, box, []string{"a b/ü", "copied"}).Extract()
	checks["bulk delete"] = err == nil
	_, err = containers.Delete(ctx, client, box).Extract()
	checks["delete container"] = err == nil
	text, _ := json.Marshal(checks)
	fmt.Println(string(text))
}
