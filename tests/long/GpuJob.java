import java.io.File;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** An application master that asks for so many containers with so many GPUs each, where nothing is computed, and writes into a file how many it got,
 * until that file is gone. Hadoop 3.1 and later. */
public class GpuJob {
    public static void main(String[] given) throws Exception {
        AMRMClient<AMRMClient.ContainerRequest> manager = AMRMClient.createAMRMClient();
        manager.init(new YarnConfiguration());
        manager.start();
        manager.registerApplicationMaster("", 0, "");
        NMClient nodes = NMClient.createNMClient();
        nodes.init(new YarnConfiguration());
        nodes.start();
        for (int number = 0; number < Integer.parseInt(given[1]); number++) {
            Resource size = Resource.newInstance(128, 1, Map.of("yarn.io/gpu", Long.parseLong(given[2])));
            manager.addContainerRequest(new AMRMClient.ContainerRequest(size, null, null, Priority.newInstance(1)));
        }
        File file = new File(given[0]);
        int count = 0;
        do {
            for (Container container : manager.allocate(0.5f).getAllocatedContainers()) {
                List<String> command = List.of("exec sleep 3600");
                nodes.startContainer(container, ContainerLaunchContext.newInstance(Map.of(), Map.of(), command, Map.of(), null, Map.of()));
                count++;
            }
            Files.writeString(file.toPath(), "" + count);
            Thread.sleep(500);
        } while (file.exists());
        manager.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
    }
}
